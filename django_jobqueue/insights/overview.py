"""Everything at once, for a page that shows it: each table read once, at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .backlog import etas_of
from .estimates import Estimate
from .failures import Failures, failures_in
from .history import Activity, Durations, Totals, activity_in, durations_in, lifetime_at
from .lanes import Lane, Pause, Tally, lanes_of, oldest_due, pauses_of, tallies_by_type, tally_of
from .reading import Reading
from .troubles import Limits, Trouble, Vitals, troubles_of, vitals_of
from .window import DEFAULT_WINDOW, checked_window
from .workers import LiveWorker, unserved, workers_of


@dataclass(frozen=True, slots=True)
class Now:
    """What the queue does now. It costs what waits and runs, however many jobs have finished.

    `oldest_due_age`: for how long the oldest job waits that could run; None when none could.
    """

    at: datetime
    lanes: Sequence[Lane]
    pauses: Sequence[Pause]
    workers: Sequence[LiveWorker]
    oldest_due_age: timedelta | None

    @property
    def total(self) -> Tally:
        """How many jobs wait and run."""
        return tally_of(self.lanes)

    @property
    def by_type(self) -> Mapping[str, Tally]:
        """How many jobs of each type wait and run; types with none are absent."""
        return tallies_by_type(self.lanes)

    @property
    def oldest_due(self) -> Lane | None:
        """Where the oldest job waits that could run; None when none could."""
        return oldest_due(self.lanes)

    @property
    def unserved(self) -> Sequence[Lane]:
        """Where jobs wait, not paused, that no live worker takes."""
        return unserved(self.lanes, self.workers)

    @property
    def slots(self) -> int:
        """How many slots live workers have."""
        return sum(worker.slots for worker in self.workers)


@dataclass(frozen=True, slots=True)
class Overview:
    """What the queue does now, did over a window, and since the beginning."""

    now: Now
    window: timedelta
    durations: Durations
    activity: Activity
    failures: Failures
    lifetime: Mapping[str, Totals]
    etas: Mapping[str, Estimate]
    vitals: Vitals
    limits: Limits

    @property
    def troubles(self) -> Sequence[Trouble]:
        """What is wrong, by the rule and the limits of the health probe."""
        return list(troubles_of(self.vitals, self.limits))

    @property
    def backlog_seconds(self) -> float | None:
        """In how many seconds everything that waits or runs will be done.

        The work of all types over all live slots, or the latest type, whichever is later. None
        while a type with jobs has no history or no live slot.
        """
        if any(not eta.slots or eta.mean is None for eta in self.etas.values()):
            return None
        if not self.now.slots or self.now.unserved:
            return None
        tallies = self.now.by_type
        work = sum(tallies[name].active * (eta.mean or 0.0) for name, eta in self.etas.items())
        latest = max((eta.seconds or 0.0 for eta in self.etas.values()), default=0.0)
        return max(work / self.now.slots, latest)


def now(using: str | None = None) -> Now:
    """Return what the queue does now: counts by type and queue, oldest due job, workers, pauses."""
    return now_at(Reading.of(using))


def now_at(reading: Reading) -> Now:
    """Return what the queue does at a reading."""
    pauses = pauses_of(reading)
    lanes = lanes_of(reading, pauses)
    oldest = oldest_due(lanes)
    age = None if oldest is None else reading.age(oldest.oldest_due_at)
    return Now(reading.now, lanes, pauses, workers_of(reading), age)


def overview(
    window: timedelta = DEFAULT_WINDOW, *, messages: bool = False, using: str | None = None
) -> Overview:
    """Return everything that the insights page shows.

    `window`: how far to look back, at most 90 days; more raises `InvalidWindow`, before any
    statement. `messages`: also group failures by message, for those who may see payloads.
    """
    checked_window(window)
    reading = Reading.of(using)
    limits = Limits.from_settings()
    live = now_at(reading)
    history = durations_in(reading, window)
    return Overview(
        now=live,
        window=window,
        durations=history,
        activity=activity_in(reading, window),
        failures=failures_in(reading, window, messages=messages),
        lifetime=lifetime_at(reading),
        etas=etas_of(live.lanes, history, live.workers),
        vitals=vitals_of(reading, limits),
        limits=limits,
    )
