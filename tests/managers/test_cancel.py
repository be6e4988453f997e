import uuid

import pytest

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.claims import claimed, row, success
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("schedule", [{}, {"scheduled": True}, {"due": True}])
def test_a_waiting_job_is_cancelled(schedule):
    job = JobFactory(**schedule)

    assert Job.objects.cancel(job) == {job.pk}

    stored = row(job)
    assert (stored["status"], stored["scheduled_for"]) == (JobStatus.CANCELLED, None)
    assert stored["finished_at"] is not None
    assert claimed() == []


@pytest.mark.parametrize("state", ["running", "succeeded", "failed", "cancelled"])
def test_any_other_job_is_left_alone(state):
    job = JobFactory(**{state: True})
    before = row(job)

    assert Job.objects.cancel(job) == set()
    assert row(job) == before


def test_of_several_jobs_those_that_wait_are_cancelled():
    waiting, running, other = JobFactory(), JobFactory(running=True), JobFactory()

    assert Job.objects.cancel([waiting, running.pk, waiting.pk]) == {waiting.pk}
    assert row(other)["status"] == JobStatus.PENDING


def test_a_set_of_jobs_is_cancelled_by_its_filter():
    JobFactory.create_batch(2, queue="mail")
    JobFactory()

    assert len(Job.objects.cancel(Job.objects.filter(queue="mail"))) == 2
    assert Job.objects.pending().count() == 1


def test_an_unknown_id_is_not_cancelled():
    assert Job.objects.cancel(uuid.uuid4()) == set()


def test_nothing_is_cancelled_without_a_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert Job.objects.cancel([]) == set()


def test_a_cancelled_job_frees_its_dedup_key():
    job = Job.objects.enqueue("test.echo", dedup_key="once")
    Job.objects.cancel(job)

    assert Job.objects.enqueue("test.echo", dedup_key="once") != job


def test_a_claim_that_was_made_first_settles():
    JobFactory()
    (job,) = claimed()
    Job.objects.cancel(job)

    assert Job.objects.settle([success(job)]) == {job.claim_token: SettleOutcome.SUCCEEDED}
