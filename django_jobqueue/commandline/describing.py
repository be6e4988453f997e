"""A job and its attempts as plain values, without what a stranger should not read."""

from datetime import datetime
from typing import Any

from ..carried import Carried, carried_by
from ..masking import masked_text
from ..models import Job, JobAttempt
from ..querysets import JobQuerySet
from ..states import error_class_of

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

WHOLE = 1_000_000
"""A value of more characters is not read as JSON: looking for its secrets would take minutes."""


UNKNOWN_CLASS = "(of unknown class)"


def error_class(last_error: str) -> str:
    """Return the class of `ClassName: message`, without a word of other texts."""
    name = error_class_of(last_error)
    return UNKNOWN_CLASS if name is None else name


def described(job: Job) -> dict[str, Any]:
    """Return a job without payload, result and the text of its error."""
    return {name: getattr(job, name) for name in COLUMNS} | {"error": error_class(job.last_error)}


def revealed(jobs: JobQuerySet, job: Job) -> dict[str, Any]:
    """Return payload, result and error text, with what looks like a secret masked.

    `as_text`: the names of those that are too long or nested too deep to be read as JSON, with how
    many characters they have; of these the text begins.
    """
    found = carried_by(jobs.filter(pk=job.pk), *BIG_COLUMNS, whole=WHOLE)
    told = {name: found.get(name, Carried(None)) for name in BIG_COLUMNS}
    as_text = {name: carried.length for name, carried in told.items() if carried.is_text}
    return {
        **{name: carried.value for name, carried in told.items()},
        "last_error": masked_text(job.last_error),
        **({"as_text": as_text} if as_text else {}),
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
