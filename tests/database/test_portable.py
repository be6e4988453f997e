"""What the portable path does where rows cannot be locked: every UPDATE asks again."""

import pytest
from django.db import connection

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import SettleOutcome
from tests.claims import claim_of, claimed, failure, row, success
from tests.factories import JobFactory
from tests.managers.paths import portable_manager

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs():
    return portable_manager()


class JustBefore:
    """Changes all rows just before the first UPDATE, as another session could without locks."""

    def __init__(self, assignments):
        self.sql = f"UPDATE django_jobqueue_job SET {assignments}"

    def __call__(self, execute, sql, params, many, context):
        if self.sql and sql.startswith("UPDATE"):
            mine, self.sql = self.sql, None
            with connection.cursor() as cursor:
                cursor.execute(mine)
        return execute(sql, params, many, context)


CANCEL = "status = 'cancelled', claim_token = NULL, lease_expires_at = NULL"


@pytest.mark.parametrize("change", [CANCEL, "attempts = 1", "scheduled_for = ready_at"])
def test_a_job_that_changed_after_the_look_is_not_claimed(jobs, change):
    job = JobFactory()

    with connection.execute_wrapper(JustBefore(change)):
        assert claimed(jobs=jobs) == []

    assert row(job)["claim_token"] is None


@pytest.mark.parametrize("ending", [success, failure])
def test_a_claim_that_was_lost_after_the_look_settles_nothing(jobs, ending):
    JobFactory()
    (job,) = claimed(jobs=jobs)

    with connection.execute_wrapper(JustBefore(CANCEL)):
        outcomes = jobs.settle([ending(job)])

    assert outcomes == {job.claim_token: SettleOutcome.CLAIM_LOST}
    assert row(job)["status"] == "cancelled"
    assert not JobAttempt.objects.exists()


@pytest.mark.parametrize("transition", ["renew", "release"])
def test_a_claim_that_was_lost_after_the_look_is_neither_renewed_nor_released(jobs, transition):
    JobFactory()
    (job,) = claimed(jobs=jobs)

    with connection.execute_wrapper(JustBefore(CANCEL)):
        assert getattr(jobs, transition)([claim_of(job)]) == set()

    assert row(job)["status"] == "cancelled"
    assert not JobAttempt.objects.exists()


def test_a_job_that_was_cancelled_after_the_look_is_not_promoted(jobs):
    JobFactory(due=True)

    with connection.execute_wrapper(JustBefore(CANCEL)):
        assert jobs.promote() == 0

    assert not Job.objects.pending().exists()
