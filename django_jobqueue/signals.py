"""`job_settled`: sent once when a job became terminal, by whoever made it so.

Receivers get `sender=Job` and `event`, a frozen `JobSettled`. They run after the write, outside
its transaction; what they raise is logged and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.dispatch import Signal

from .job_context import log_fields
from .logs import get_logger
from .states import JobStatus, Reaped

if TYPE_CHECKING:
    from .models import Job

logger = get_logger(__name__)

job_settled = Signal()


@dataclass(frozen=True, slots=True)
class JobSettled:
    """A job that will not run again by itself."""

    job_id: UUID
    job_type: str
    queue: str
    status: JobStatus
    attempts: int
    subject_type: str | None
    subject_id: str | None
    org_id: str | None
    last_error: str
    using: str | None = None
    """The alias of the database that the job is in; None is where the router writes `Job`."""


def settled_event(job: "Job", status: JobStatus, *, attempts: int, last_error: str) -> JobSettled:
    """Return the event of a job as it was when it was claimed or looked up."""
    return JobSettled(
        job_id=job.pk,
        job_type=job.type,
        queue=job.queue,
        status=status,
        attempts=attempts,
        subject_type=job.subject_type,
        subject_id=job.subject_id,
        org_id=job.org_id,
        last_error=last_error,
        using=job._state.db,  # noqa: SLF001 (Django's word for it)
    )


def send_reaped(sender: "type[Job]", jobs: Iterable[Reaped], using: str | None = None) -> None:
    """Send `job_settled` for those of the reaped jobs that failed; the others wait again.

    `using`: the alias of the database that they are in.
    """
    for job in jobs:
        if job.failed:
            event = JobSettled(
                job_id=job.job_id,
                job_type=job.job_type,
                queue=job.queue,
                status=job.status,
                attempts=job.attempts,
                subject_type=job.subject_type,
                subject_id=job.subject_id,
                org_id=job.org_id,
                last_error=job.error.last_error,
                using=using,
            )
            send_settled(sender, event)


def send_cancelled(sender: "type[Job]", jobs: "Iterable[Job]") -> None:
    """Send `job_settled` for jobs that were cancelled."""
    for job in jobs:
        event = settled_event(
            job, JobStatus.CANCELLED, attempts=job.attempts, last_error=job.last_error
        )
        send_settled(sender, event)


def send_settled(sender: "type[Job]", event: JobSettled) -> None:
    """Send `job_settled`; a receiver that raises is logged and harms nobody."""
    for receiver, answer in job_settled.send_robust(sender, event=event):
        if isinstance(answer, Exception):
            logger.error(
                "A receiver of job_settled failed: %r",
                receiver,
                exc_info=answer,
                extra=log_fields(event.job_id, event.job_type, event.attempts, queue=event.queue),
            )
