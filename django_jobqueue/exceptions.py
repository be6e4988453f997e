"""Every exception this package raises on purpose, in one tree, and how they show a value."""

from datetime import timedelta
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

LONGEST_SHOWN = 100


def shown(value: object) -> str:
    """Return `value` as an error may show it: never raises, never long."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (an integer of over 4,300 digits, or somebody's __repr__)
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


class JobQueueError(Exception):
    """Base of all errors of this package."""


class InvalidSettings(JobQueueError, ImproperlyConfigured):
    """`JOBQUEUE` holds an unknown key or a value that cannot be used."""


class InvalidWindow(JobQueueError, ValueError):
    """Insights were asked for over a window they do not cover: the message names it."""


class SetupError(JobQueueError):
    """A worker cannot start: the message says what is wrong and the remedy."""


class EnqueueError(JobQueueError):
    """A job could not be enqueued; nothing was written."""


class InvalidJob(EnqueueError, ValueError):
    """An argument of `enqueue` cannot be stored: the message names it and the remedy."""


class InvalidPayload(InvalidJob):
    """A payload that JSON or the database cannot hold: the message names the path."""


class EnqueueConflict(EnqueueError):
    """An active job with the same dedup key kept appearing and vanishing."""


class InvalidSchedule(JobQueueError, ValueError):
    """A schedule that can never fire as meant: the message names what is wrong."""


class InvalidResult(JobQueueError, ValueError):
    """A handler returned something that cannot be stored as the job's result."""


class PermanentError(JobQueueError):
    """Raised by a handler: the job fails now, whatever attempts it has left."""


class HandlerNotFound(PermanentError):
    """No handler is registered in this process for the job's type."""


class TaskNotFound(PermanentError):
    """No task of this queue is where the job's type says: the message says what is."""


class InvalidCall(PermanentError):
    """The payload of a task's job is no call of it."""


class TaskFailed(JobQueueError):
    """What a task raised, as text: handled while `task_finished` is sent, never raised further."""


class JobCancelled(JobQueueError):
    """A job that was cancelled: recorded in the result of a task, never raised."""


class RateLimitError(JobQueueError):
    """Raised by a handler whose provider asked it to wait.

    `retry_after`: the least number of seconds until the next attempt, or None.
    """

    def __init__(self, message: str = "rate limited", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class WorkerDied(JobQueueError):
    """An attempt whose worker died or lost its claim: recorded by the reaper, never raised."""


class JobTimeoutError(JobQueueError, TimeoutError):
    """An attempt ran longer than the ceiling of its type."""

    def __init__(self, job_id: UUID, job_type: str, timeout: timedelta) -> None:
        super().__init__(f"job {job_id} ({job_type}) ran longer than {timeout.total_seconds():g} s")
        self.job_id = job_id
        self.job_type = job_type
        self.timeout = timeout
