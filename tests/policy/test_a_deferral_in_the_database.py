"""The decision meets the rows: what a deferral leaves there, however often it is written."""

import uuid
from datetime import timedelta

import pytest

from django_jobqueue import RateLimitError
from django_jobqueue.models import Job
from django_jobqueue.policy import Ending, RateLimitBudget, RetryLimits, decide, defer
from django_jobqueue.states import Attempt, JobStatus, SettleOutcome

pytestmark = pytest.mark.django_db

DEFERRED = SettleOutcome.RATE_LIMIT_DEFERRED
SECOND = timedelta(seconds=1)
LIMITS = RetryLimits(
    max_attempts=3,
    base=2 * SECOND,
    cap=60 * SECOND,
    rate_limit=RateLimitBudget(max_hits=10, base=30 * SECOND, cap=900 * SECOND),
)
LEASES = {"test.echo": 90 * SECOND}


@pytest.fixture
def waiting():
    """A job that failed once, so that its next attempt is its second."""
    job = Job.objects.enqueue("test.echo", {})
    decision = ended(claimed(), ValueError("first"))
    Job.objects.settle([decision])
    return due(job)


def due(job):
    """Let the time come that a job waits for."""
    Job.objects.filter(pk=job.pk).update(scheduled_for=None)
    return job


def claimed():
    (job,) = Job.objects.claim([uuid.uuid4()], LEASES)
    return job


def ended(job, error):
    attempt = Attempt(job.attempts, job.worker, job.started_at)
    return decide(
        job.claim, attempt, Ending(error=error), LIMITS, r=0.5, hits=job.rate_limit_hits, now=None
    )


def columns(job):
    return Job.objects.filter(pk=job.pk).values().get()


def test_attempts_are_where_they_were_though_it_is_written_twice(waiting):
    job = claimed()
    assert job.attempts == 2
    decision = ended(job, RateLimitError(retry_after=5))

    first = Job.objects.settle([decision])
    after_first = columns(job)
    second = Job.objects.settle([decision])

    assert first == second == {decision.claim.token: DEFERRED}
    assert columns(job) == after_first
    assert after_first["status"] == JobStatus.PENDING
    assert after_first["attempts"] == 1
    assert after_first["rate_limit_hits"] == 1
    assert after_first["rate_limited_at"] is not None
    assert after_first["scheduled_for"] >= after_first["rate_limited_at"] + 5 * SECOND
    assert waiting.attempt_history.filter(outcome=DEFERRED).count() == 1


def test_attempts_stay_though_it_is_written_again_during_the_next_claim(waiting):
    decision = ended(claimed(), RateLimitError())
    Job.objects.settle([decision])
    due(waiting)
    again = claimed()
    before = columns(waiting)

    assert Job.objects.settle([decision]) == {decision.claim.token: DEFERRED}

    assert columns(waiting) == before
    assert before["attempts"] == again.attempts == 2


def test_deferrals_never_eat_the_attempts(waiting):
    for hits in range(1, 11):
        decision = ended(claimed(), RateLimitError())
        assert Job.objects.settle([decision])[decision.claim.token] == DEFERRED
        due(waiting)
        assert columns(waiting)["attempts"] == 1
        assert columns(waiting)["rate_limit_hits"] == hits

    decision = ended(claimed(), RateLimitError())
    Job.objects.settle([decision])

    row = columns(waiting)
    assert row["status"] == JobStatus.FAILED
    assert row["attempts"] == 2
    assert row["rate_limit_hits"] == 11
    assert row["scheduled_for"] is None


def test_a_job_that_did_not_start_keeps_its_counts(waiting):
    job = claimed()
    decision = defer(job.claim, Attempt(job.attempts, job.worker, job.started_at), 30 * SECOND)

    first = Job.objects.settle([decision])
    second = Job.objects.settle([decision])

    assert first == second == {decision.claim.token: DEFERRED}
    row = columns(job)
    assert row["attempts"] == 1
    assert row["rate_limit_hits"] == 0
    assert row["rate_limited_at"] is None
    assert row["scheduled_for"] is not None
