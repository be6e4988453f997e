"""How long the latest jobs took: what an estimate for one job stands on, at a bounded cost."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import fsum

from django.db.models import F

from ..database.expressions import SecondsBetween
from ..models import JobStatsRollup
from ..states import JobStatus
from .reading import Reading
from .window import DEFAULT_WINDOW

MOST_RECENT = 5_000


@dataclass(frozen=True)
class Runs:
    """How long runs of one type took. `seconds`: some of them, in ascending order."""

    seconds: tuple[float, ...]

    @cached_property
    def mean(self) -> float:
        """The mean, in seconds."""
        return fsum(self.seconds) / len(self.seconds)

    @cached_property
    def variance(self) -> float:
        """How far runs lie from the mean, squared."""
        return fsum((run - self.mean) ** 2 for run in self.seconds) / len(self.seconds)

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        return (0.0, *accumulate(self.seconds))

    def remaining(self, elapsed: float) -> float:
        """Return for how long a run goes on, that has lasted `elapsed` seconds, on the average.

        By the runs that lasted longer; one that outlasts them all is taken to be near its end.
        """
        shorter = bisect_right(self.seconds, elapsed)
        longer = len(self.seconds) - shorter
        if not longer:
            return self.mean / 10
        return (self._sums[-1] - self._sums[shorter]) / longer - elapsed


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the durations of one type: how many runs tell it, and what they tell."""

    samples: int
    runs: Runs


def recent_runs(reading: Reading) -> Mapping[str, Known]:
    """Return the durations of the latest 5,000 finished jobs of the last week, by type.

    A type that is not among them is known by the mean of its purged jobs, if it has some.
    """
    ended = reading.jobs.terminal().filter(finished_at__gte=reading.since(DEFAULT_WINDOW))
    latest = ended.order_by("-finished_at")[:MOST_RECENT]
    seconds = SecondsBetween("started_at", "finished_at")
    found: dict[str, list[float]] = {}
    # The condition is ours, not the statement's: there it could make the search unbounded.
    for job_type, status, run in latest.values_list("type", "status", seconds):
        if status == JobStatus.SUCCEEDED and run is not None and run >= 0:
            found.setdefault(job_type, []).append(run)
    known = {
        job_type: Known(len(runs), Runs(tuple(sorted(runs)))) for job_type, runs in found.items()
    }
    purged = JobStatsRollup.objects.using(reading.using).filter(duration_samples__gt=0)
    mean = F("duration_sum") / F("duration_samples")
    for job_type, samples, average in purged.values_list("type", "duration_samples", mean):
        known.setdefault(job_type, Known(samples, Runs((average,))))
    return known
