"""The rows of the list: what a page reads of each job, in one query, and what that means."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import BooleanField, DateTimeField, ExpressionWrapper, Q
from django.db.models.enums import TextChoices
from django.utils.translation import gettext_lazy as _

from ..conf import stuck_threshold
from ..database.clock import database_clock
from ..managers import JobQuerySet
from ..querysets import stuck_signals
from ..states import JobStatus

UNREAD = ("payload", "result", "reason", "dedup_key", "trace_context", "org_id", "claim_token")
"""What no column shows."""


class ShownState(TextChoices):
    """Where a job is, in the words of the list: with what its status alone does not tell."""

    PENDING = JobStatus.PENDING.value, JobStatus.PENDING.label
    SCHEDULED = "scheduled", _("scheduled")
    RUNNING = JobStatus.RUNNING.value, JobStatus.RUNNING.label
    STUCK = "stuck", _("stuck")
    SUCCEEDED = JobStatus.SUCCEEDED.value, JobStatus.SUCCEEDED.label
    FAILED = JobStatus.FAILED.value, JobStatus.FAILED.label
    CANCELLED = JobStatus.CANCELLED.value, JobStatus.CANCELLED.label


if TYPE_CHECKING:
    from ..models import Job

    class Row(Job):
        """A job as `as_rows` reads it."""

        read_at: datetime
        """When it was read, by the database's clock."""
        is_stuck: bool

        class Meta:
            abstract = True


def as_rows(jobs: JobQuerySet) -> "JobQuerySet":
    """Return the jobs with what the columns need, and without what they do not."""
    clock: Any = database_clock(connections[jobs.db])
    signals = stuck_signals(stuck_threshold(), clock, clock)
    stuck = Q(status=JobStatus.RUNNING) & Q(*signals.values(), _connector=Q.OR)
    return jobs.defer(*UNREAD).annotate(
        read_at=ExpressionWrapper(clock, output_field=DateTimeField()),
        is_stuck=ExpressionWrapper(stuck, output_field=BooleanField()),
    )


def state_of(row: "Row") -> ShownState:
    """Return the state to show for a row."""
    if row.status == JobStatus.PENDING and row.scheduled_for is not None:
        return ShownState.SCHEDULED
    return ShownState.STUCK if row.is_stuck else ShownState(row.status)


def duration_of(row: "Row") -> timedelta | None:
    """Return how long the last attempt took, or takes so far; None when none has run."""
    if row.started_at is None:
        return None
    if row.status == JobStatus.RUNNING:
        return row.read_at - row.started_at
    if row.status in {JobStatus.SUCCEEDED, JobStatus.FAILED} and row.finished_at is not None:
        return row.finished_at - row.started_at
    return None
