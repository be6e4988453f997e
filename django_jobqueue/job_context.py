"""Which job this code runs for: for handlers' own log lines, and for the package's.

A handler's log lines carry the job through a filter that a site puts on its log handlers:

    "filters": {"job": {"()": "django_jobqueue.job_context.JobContextFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "filters": ["job"], …}},

What is current is a context variable. It is set for the slot's thread, for the task of an async
handler and for its `sync_to_async` calls; a thread that a handler starts itself has it only if
the handler copies the context (`contextvars.copy_context().run`).
"""

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import UUID

if TYPE_CHECKING:
    from .models import Job

NO_JOB = "-"
"""What a log line's attributes say outside a job."""


class CurrentJob(NamedTuple):
    """What the code of a handler may know of the attempt it runs in.

    `attempt`: 1 for the first. `worker`: host:pid:slot.
    """

    id: UUID
    type: str
    attempt: int
    worker: str
    queue: str

    @classmethod
    def of(cls, job: "Job") -> Self:
        """Return the attempt for which a job was claimed."""
        return cls(job.id, job.type, job.attempts, job.worker, job.queue)


LOG_FIELDS = ("job_id", "job_type", "job_attempt", "job_worker", "job_queue")


def log_fields(
    job_id: UUID,
    job_type: str = NO_JOB,
    attempt: int | str = NO_JOB,
    worker: str = NO_JOB,
    queue: str = NO_JOB,
    **more: str,
) -> dict[str, Any]:
    """Return the attributes of a log record about a job, for `extra`; "-" is not known."""
    values = (str(job_id), job_type, attempt, worker, queue)
    return dict(zip(LOG_FIELDS, values, strict=True)) | more


_current: ContextVar[CurrentJob | None] = ContextVar("django_jobqueue_job", default=None)


def current_job() -> CurrentJob | None:
    """Return the attempt in which the calling code runs; None outside a handler."""
    return _current.get()


class running_job:  # noqa: N801 (used as a function; a generator costs ten times as much)
    """Make the attempt the current one for the block."""

    __slots__ = ("_job", "_token")

    def __init__(self, job: CurrentJob) -> None:
        self._job = job

    def __enter__(self) -> None:
        self._token = _current.set(self._job)

    def __exit__(self, *_error: object) -> None:
        _current.reset(self._token)


class JobContextFilter(logging.Filter):
    """Gives every record `job_id`, `job_type`, `job_attempt`, `job_worker` and `job_queue`.

    Outside a job each is "-". A record that says itself which job it is about keeps what it says.
    It never drops a record. For handlers rather than loggers: a logger's filters do not see what
    its children log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what is missing; always True."""
        if "job_id" in record.__dict__:  # What it does not know of its job is not this job's.
            fields = dict.fromkeys(LOG_FIELDS, NO_JOB)
        else:
            job = current_job()
            fields = dict.fromkeys(LOG_FIELDS, NO_JOB) if job is None else log_fields(*job)
        record.__dict__.update(fields | record.__dict__)
        return True
