"""What happened: how long jobs took, how many ended when, and totals since the beginning."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.db.models import Count, Q, Value

from ..database.expressions import SecondsBetween, WholePart
from ..database.samples import Durations, Spread, durations_of
from ..models import JobStatsRollup
from ..querysets import MOMENT
from .reading import Reading
from .window import DEFAULT_WINDOW

__all__ = [
    "EDGES",
    "Activity",
    "Durations",
    "Slice",
    "Spread",
    "Totals",
    "activity",
    "durations",
    "lifetime",
]

EDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 14400.0)
"""Between these seconds the distribution of durations is counted."""

MOST_SLICES = 60
STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 180, 360, 720, 1440, 2880)
)


@dataclass(frozen=True, slots=True)
class Slice:
    """How many jobs reached a terminal state in a part of the window."""

    start: datetime
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """A window in slices of one length, the oldest first; the last one ends now."""

    step: timedelta
    slices: Sequence[Slice]

    @property
    def succeeded(self) -> int:
        """How many jobs succeeded in the window."""
        return sum(part.succeeded for part in self.slices)

    @property
    def failed(self) -> int:
        """How many jobs failed for good in the window."""
        return sum(part.failed for part in self.slices)


@dataclass(frozen=True, slots=True)
class Totals:
    """Jobs of one type, or of all, since the beginning: those still kept and those purged."""

    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.succeeded + other.succeeded,
            self.failed + other.failed,
            self.cancelled + other.cancelled,
        )


def durations(window: timedelta = DEFAULT_WINDOW, using: str | None = None) -> Durations:
    """Return how long the jobs took that succeeded in the window, overall and by type.

    One statement, one scan. Also how many of them there were in the last hour, and how the
    durations spread over `EDGES`. Raises `InvalidWindow`.
    """
    return durations_in(Reading.of(using), window)


def durations_in(reading: Reading, window: timedelta) -> Durations:
    """Return how long the jobs took that succeeded in the window before a reading."""
    return durations_of(reading.jobs, reading.since(window), reading.now, EDGES)


def activity(window: timedelta = DEFAULT_WINDOW, using: str | None = None) -> Activity:
    """Return how many jobs reached a terminal state, in at most 60 slices of the window."""
    return activity_in(Reading.of(using), window)


def activity_in(reading: Reading, window: timedelta) -> Activity:
    """Return how many jobs ended in each slice of the window before a reading."""
    since = reading.since(window)
    step = step_for(window)
    count = ceil(window / step)
    ended = reading.jobs.terminal().filter(finished_at__gte=since, finished_at__lt=reading.now)
    # Counted back from now, so that the last slice is a whole one.
    ago = SecondsBetween("finished_at", Value(reading.now, MOMENT))
    back = WholePart(ago / step.total_seconds())
    counted = ended.order_by().values_list(back, "status").annotate(Count("pk"))
    found: dict[int, dict[str, int]] = {}
    for place, status, jobs in counted:
        found.setdefault(min(place, count - 1), {})[status] = jobs
    return Activity(
        step,
        [
            Slice(reading.now - (place + 1) * step, **found.get(place, {}))
            for place in reversed(range(count))
        ],
    )


def step_for(window: timedelta) -> timedelta:
    """Return the shortest step that cuts the window into at most 60 slices."""
    return next(step for step in STEPS if window / step <= MOST_SLICES)


def lifetime(using: str | None = None) -> dict[str, Totals]:
    """Return how many jobs of each type ever ended: those still kept, and those purged."""
    return lifetime_at(Reading.of(using))


def lifetime_at(reading: Reading) -> dict[str, Totals]:
    """Return how many jobs of each type had ever ended at a reading."""
    totals: dict[str, Totals] = {}
    jobs: Any = reading.jobs.terminal().order_by().values("type")
    kept = jobs.annotate(**{f.name: Count("pk", filter=Q(status=f.name)) for f in fields(Totals)})
    purged = JobStatsRollup.objects.using(reading.using).values_list(
        "type", "succeeded_count", "failed_count", "cancelled_count"
    )
    # One statement: a purge that commits between two would be counted in both, or in neither.
    rows = kept.values_list("type", "succeeded", "failed", "cancelled").union(purged, all=True)
    for job_type, *counts in rows:
        totals[job_type] = totals.get(job_type, Totals()) + Totals(*counts)
    return dict(sorted(totals.items()))
