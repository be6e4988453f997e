"""A job and its attempts as plain values, without what a stranger should not read."""

from datetime import datetime
from typing import Any

from ..masking import masked, masked_text
from ..models import Job, JobAttempt

COLUMNS = (
    "id",
    "type",
    "queue",
    "status",
    "priority",
    "attempts",
    "max_attempts",
    "rate_limit_hits",
    "subject_type",
    "subject_id",
    "reason",
    "dedup_key",
    "org_id",
    "created_at",
    "ready_at",
    "scheduled_for",
    "started_at",
    "finished_at",
    "lease_expires_at",
    "worker",
    "trace_context",
)
"""What is told of a job, in this order."""

BIG_COLUMNS = ("payload", "result")


def error_class(last_error: str) -> str:
    """Return the class of `ClassName: message`."""
    return last_error.partition(":")[0]


def described(job: Job) -> dict[str, Any]:
    """Return a job without payload, result and the text of its error."""
    return {name: getattr(job, name) for name in COLUMNS} | {"error": error_class(job.last_error)}


def revealed(job: Job) -> dict[str, Any]:
    """Return payload, result and error text, with what looks like a secret masked."""
    return {
        "payload": masked(job.payload),
        "result": masked(job.result),
        "last_error": masked_text(job.last_error),
    }


def described_attempt(attempt: JobAttempt, *, reveal: bool) -> dict[str, Any]:
    """Return an attempt; its message and traceback, masked, only with `reveal`."""
    told = {
        "number": attempt.number,
        "outcome": str(attempt.outcome),
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
        "worker": attempt.worker,
        "exception_class": attempt.exception_class,
    }
    if reveal:
        told |= {
            "message": masked_text(attempt.message),
            "traceback": masked_text(attempt.traceback),
        }
    return told


def seconds_between(begin: datetime | None, end: datetime | None) -> float | None:
    """Return how long it took; None if it did not begin or end."""
    return None if begin is None or end is None else (end - begin).total_seconds()


def tries(job: Job) -> str:
    """Return the attempts, of how many where a claim has said so."""
    return f"{job.attempts}/{job.max_attempts}" if job.max_attempts else str(job.attempts)


def about(job: Job) -> str:
    """Return the subject, or nothing."""
    return "" if job.subject_type is None else f"{job.subject_type}:{job.subject_id}"
