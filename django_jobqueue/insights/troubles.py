"""What counts as trouble: the one rule by which the health probe and the insights page judge."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from django.db.models import Count, Q

from ..conf import settings, stuck_threshold
from ..states import JobStatus
from .reading import Reading

RECENTLY = timedelta(hours=1)

MOST_SAMPLES = 10_000
"""The latest of the hour stand for all of them."""

FEWEST_SAMPLES = 20
"""Fewer say nothing about a share: one failure of one job is no outage."""


class Trouble(Enum):
    """What can be wrong with a queue's work; the value is the code that machines know it by."""

    OVERDUE = "overdue"
    STUCK = "stuck"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is borne before it is trouble.

    `max_overdue`: seconds that a due job may wait, and a stuck one. `max_stuck`: how many jobs may
    be stuck longer. `max_failing`: which share of the jobs that ended lately may have failed.
    """

    max_overdue: float
    max_stuck: int
    max_failing: float

    @classmethod
    def from_settings(cls) -> "Limits":
        """Return those of the site; raises InvalidSettings for a value that cannot be used."""
        return cls(
            settings.HEALTH_MAX_OVERDUE, settings.HEALTH_MAX_STUCK, settings.HEALTH_MAX_FAILING
        )


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is held against the limits.

    `overdue`: seconds that the oldest due job has waited that no pause holds back, and `oldest` its
    type and queue; None without one. `stuck`: jobs that are stuck longer than a due job may wait.
    `ended`, `failed`: of the jobs that succeeded or failed in the last hour, 10,000 at most.
    """

    overdue: float | None
    stuck: int
    ended: int
    failed: int
    oldest: tuple[str, str] | None = None

    @property
    def failing(self) -> float | None:
        """The share of the ended jobs that failed; None for fewer than 20 of them."""
        return self.failed / self.ended if self.ended >= FEWEST_SAMPLES else None


def troubles_of(vitals: Vitals, limits: Limits) -> Iterator[Trouble]:
    """Yield what is wrong."""
    if vitals.overdue is not None and vitals.overdue > limits.max_overdue:
        yield Trouble.OVERDUE
    if vitals.stuck > limits.max_stuck:
        yield Trouble.STUCK
    if vitals.failing is not None and vitals.failing > limits.max_failing:
        yield Trouble.FAILING


def vitals_of(reading: Reading, limits: Limits) -> Vitals:
    """Return the vitals at a reading, in three statements."""
    now, jobs = reading.now, reading.jobs
    due = jobs.pending().filter(Q(scheduled_for__isnull=True) | Q(scheduled_for__lte=now))
    oldest = due.not_paused().order_by("ready_at").values_list("type", "queue", "ready_at").first()
    as_of = now - timedelta(seconds=limits.max_overdue)
    stuck = jobs.stuck(stuck_threshold(), as_of=as_of, now=now)
    ended = jobs.filter(
        status__in=[JobStatus.SUCCEEDED, JobStatus.FAILED], finished_at__gte=now - RECENTLY
    ).order_by("-finished_at")[:MOST_SAMPLES]
    counts = ended.aggregate(
        ended=Count("pk"), failed=Count("pk", filter=Q(status=JobStatus.FAILED))
    )
    found = stuck.count(), counts["ended"], counts["failed"]
    if oldest is None:
        return Vitals(None, *found)
    job_type, queue, ready_at = oldest
    waited = max((now - ready_at).total_seconds(), 0.0)
    return Vitals(waited, *found, oldest=(job_type, queue))
