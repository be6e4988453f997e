"""Short words for what an executor asks of the manager, and for what it finds afterwards."""

import uuid
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection, connections

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import (
    Attempt,
    Changes,
    Claim,
    Decision,
    ErrorReport,
    JobStatus,
    SettleOutcome,
)

LEASE = timedelta(seconds=90)
LEASES = {"test.echo": LEASE}
ERROR = ErrorReport("builtins.ValueError", "as asked", "Traceback ...")
LOCK_TIMEOUT = "10s"
TRIES = 1_000


def tokens(count=1):
    return [uuid.uuid4() for _ in range(count)]


def claimed(count=1, *, jobs=Job.objects, leases=LEASES, **options):
    """Claim `count` jobs and return them."""
    return jobs.claim(tokens(count), leases, **options)


def claim_of(job):
    return Claim(job.pk, job.claim_token)


def attempt_of(job, error=None):
    return Attempt(job.attempts, job.worker, job.started_at, error)


def success(job, result=None):
    changes = Changes(JobStatus.SUCCEEDED, result=result)
    return Decision(claim_of(job), SettleOutcome.SUCCEEDED, changes, attempt_of(job))


def failure(job, error=ERROR):
    changes = Changes(JobStatus.FAILED, last_error=error.last_error)
    return Decision(claim_of(job), SettleOutcome.FAILED, changes, attempt_of(job, error))


def retry(job, delay=timedelta(minutes=5), error=ERROR):
    changes = Changes(JobStatus.PENDING, last_error=error.last_error, delay=delay)
    return Decision(claim_of(job), SettleOutcome.RETRY_SCHEDULED, changes, attempt_of(job, error))


def settled(decisions, *, jobs=Job.objects):
    """Settle, and ask again about rows that somebody had locked; return the answers."""
    left, outcomes = list(decisions), {}
    for _ in range(TRIES):
        outcomes |= jobs.settle(left)
        left = [decision for decision in left if decision.claim.token not in outcomes]
        if not left:
            return outcomes
    raise AssertionError(f"no answer about {left}")


def row(job):
    """Every column of a job as it is stored now."""
    return Job.objects.filter(pk=job.pk).values().get()


def rows():
    """Every column of every job and of every attempt."""
    jobs = list(Job.objects.order_by("pk").values())
    return jobs, list(JobAttempt.objects.order_by("pk").values())


@contextmanager
def locked(*jobs):
    """Hold the rows in a transaction of another session; our own waits fail instead of hanging."""
    other = connections.create_connection(connection.alias)
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            ids = [job.pk for job in jobs]
            cursor.execute("SELECT 1 FROM django_jobqueue_job WHERE id = ANY(%s) FOR UPDATE", [ids])
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
        yield other
    finally:
        other.rollback()
        other.close()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
