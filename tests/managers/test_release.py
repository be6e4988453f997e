from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import Claim, JobStatus, SettleOutcome
from tests.claims import claim_of, claimed, failure, locked, retry, row, rows, success, tokens
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db


def test_a_released_job_waits_again_with_its_attempt_uncharged(jobs):
    JobFactory(attempts=1)
    (job,) = claimed(jobs=jobs)

    assert jobs.release([claim_of(job)]) == {job.claim_token}

    stored = row(job)
    assert (stored["status"], stored["attempts"]) == (JobStatus.PENDING, 1)
    assert (stored["claim_token"], stored["lease_expires_at"]) == (None, None)
    assert stored["scheduled_for"] is None
    assert abs(stored["ready_at"] - timezone.now()) < timedelta(seconds=30)
    assert claimed(jobs=jobs) == [job]


def test_a_release_writes_an_attempt(jobs):
    JobFactory(attempts=1)
    (token,) = tokens()
    (job,) = jobs.claim([token], {"test.echo": timedelta(seconds=9)}, workers={token: "host:1:0"})

    jobs.release([claim_of(job)])

    attempt = JobAttempt.objects.get()
    assert (attempt.job_id, attempt.number) == (job.pk, 2)
    assert attempt.outcome == SettleOutcome.RELEASED
    assert attempt.started_at == job.started_at
    assert attempt.finished_at == row(job)["ready_at"]
    assert (attempt.executor, attempt.worker) == ("server", "host:1:0")
    assert attempt.claim_token == token
    assert (attempt.exception_class, attempt.message, attempt.traceback) == ("", "", "")


def test_a_second_release_takes_no_second_attempt_back(jobs):
    JobFactory(attempts=1)
    (job,) = claimed(jobs=jobs)
    jobs.release([claim_of(job)])
    before = rows()

    assert jobs.release([claim_of(job)]) == set()
    assert rows() == before


def test_attempts_never_fall_below_zero(jobs):
    job = JobFactory(running=True, attempts=0)

    assert jobs.release([claim_of(job)]) == {job.claim_token}
    assert row(job)["attempts"] == 0


def test_a_release_with_a_foreign_token_changes_nothing(jobs):
    job = JobFactory(running=True)
    before = rows()

    assert jobs.release([Claim(job.pk, tokens()[0])]) == set()
    assert rows() == before


@pytest.mark.parametrize("ending", [success, failure, retry])
def test_a_release_after_the_settle_changes_nothing(jobs, ending):
    JobFactory()
    (job,) = claimed(jobs=jobs)
    jobs.settle([ending(job)])
    before = rows()

    assert jobs.release([claim_of(job)]) == set()
    assert rows() == before


@pytest.mark.parametrize("order", [1, -1], ids=["stale first", "stale last"])
def test_a_lost_and_a_live_claim_of_one_job_are_told_apart(jobs, order):
    JobFactory()
    (stale,) = claimed(jobs=jobs)
    jobs.release([claim_of(stale)])
    (live,) = claimed(jobs=jobs)

    assert jobs.release([claim_of(stale), claim_of(live)][::order]) == {live.claim_token}
    assert row(live)["status"] == JobStatus.PENDING


def test_nothing_is_released_without_a_query(jobs, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert jobs.release([]) == set()


@on_postgresql
@committed
def test_a_locked_row_is_left_and_delays_no_other(jobs):
    first, second = JobFactory.create_batch(2, running=True)
    before = row(first)

    with locked(first):
        assert jobs.release([claim_of(first), claim_of(second)]) == {second.claim_token}

    assert row(first) == before


@on_postgresql
@committed
def test_a_release_is_one_statement(django_assert_num_queries):
    held = JobFactory.create_batch(3, running=True)

    with django_assert_num_queries(1):
        assert len(Job.objects.release([claim_of(job) for job in held])) == 3
