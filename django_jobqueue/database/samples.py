"""How long jobs took: every figure from one scan of the succeeded jobs of a window."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, chain
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections
from django.db.models import BooleanField, ExpressionWrapper, F, Q

from ..states import JobStatus
from .expressions import SecondsBetween

if TYPE_CHECKING:
    from ..querysets import JobQuerySet

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Spread:
    """How many runs there were, how many in the last hour, and how long they took, in seconds."""

    samples: int
    last_hour: int
    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Durations:
    """Of all jobs (None: there were none), by type, and how many between two edges.

    `buckets[n]`: how many took at least `edges[n - 1]` and less than `edges[n]` seconds.
    """

    overall: Spread | None
    by_type: Mapping[str, Spread]
    buckets: Sequence[int]


# Samples are counted by their logarithm: sorting all of them, as percentile_cont does, would cost
# twice as much. 14 keeps it positive, where every database cuts a bin one per cent wide.
BINS = """
SELECT
    type,
    count(*), sum(CASE WHEN recent THEN 1 ELSE 0 END), sum(seconds), min(seconds), max(seconds)
FROM ({samples}) AS sample
GROUP BY
    type,
    CAST((ln(CASE WHEN seconds > 0.000001 THEN seconds ELSE 0.000001 END) + 14) * 100 AS {int})
"""

WHOLE = {"postgresql": " OFFSET 0", "sqlite": " LIMIT -1"}
"""What keeps a plan from taking the subquery apart, and computing each duration six times."""


class Bin(NamedTuple):
    """Samples that differ by less than one per cent: how many, and between which seconds."""

    low: float
    high: float
    samples: int


def durations_of(
    jobs: "JobQuerySet", since: datetime, until: datetime, edges: Sequence[float]
) -> Durations:
    """Return how long those of the jobs took that succeeded and ended in [since, until).

    Percentiles are interpolated between two samples, as PostgreSQL's percentile_cont does. Samples
    that differ by less than one per cent are counted together; where a percentile falls among more
    than two of these, and where an edge does, it is exact to one per cent.
    """
    bins: defaultdict[str, list[Bin]] = defaultdict(list)
    sums: defaultdict[str, float] = defaultdict(float)
    last_hour: Counter[str] = Counter()
    buckets = [0] * (len(edges) + 1)
    statement, parameters = statement_of(jobs, since, until)
    with connections[jobs.db].cursor() as cursor:
        cursor.execute(statement, parameters)
        for job_type, count, recent, total, low, high in cursor:
            bins[job_type].append(Bin(low, high, count))
            sums[job_type] += total
            last_hour[job_type] += int(recent)
            buckets[bisect_right(edges, low)] += count
    everything = chain.from_iterable(bins.values())
    return Durations(
        spread_of(everything, fsum(sums.values()), last_hour.total()),
        by_type(bins, sums, last_hour),
        buckets,
    )


def statement_of(
    jobs: "JobQuerySet", since: datetime, until: datetime
) -> tuple[str, Sequence[Any]]:
    """Return the one statement, and its parameters."""
    ended = jobs.terminal().filter(finished_at__gte=since, finished_at__lt=until)
    samples = (
        ended.filter(status=JobStatus.SUCCEEDED, started_at__lte=F("finished_at"))
        .order_by()
        .annotate(
            seconds=SecondsBetween("started_at", "finished_at"),
            recent=ExpressionWrapper(Q(finished_at__gte=until - HOUR), BooleanField()),
        )
        .values("type", "seconds", "recent")
    )
    vendor = connections[jobs.db].vendor
    inner, parameters = samples.query.get_compiler(jobs.db).as_sql()
    whole = inner + WHOLE.get(vendor, "")
    integer = "signed" if vendor == "mysql" else "integer"
    return BINS.format(samples=whole, int=integer), parameters


def by_type(
    bins: Mapping[str, Iterable[Bin]], sums: Mapping[str, float], last_hour: Mapping[str, int]
) -> dict[str, Spread]:
    """Return how the samples of each type spread."""
    spreads = {name: spread_of(some, sums[name], last_hour[name]) for name, some in bins.items()}
    return {name: spread for name, spread in sorted(spreads.items()) if spread is not None}


def spread_of(bins: Iterable[Bin], total: float, last_hour: int) -> Spread | None:
    """Return how samples that add up to `total` seconds spread; None when there are none."""
    ordered = sorted(bins)
    ranks = list(accumulate(some.samples for some in ordered))
    if not ranks:
        return None
    count = ranks[-1]
    middle, high = (percentile(ordered, ranks, share) for share in (0.5, 0.95))
    return Spread(count, last_hour, total / count, middle, high)


def percentile(ordered: Sequence[Bin], ranks: Sequence[int], share: float) -> float:
    """Return the value below which that share of the samples lies, interpolated."""
    place = share * (ranks[-1] - 1)
    rank = int(place)
    low = sample_at(ordered, ranks, rank)
    if place == rank:
        return low
    return low + (sample_at(ordered, ranks, rank + 1) - low) * (place - rank)


def sample_at(ordered: Sequence[Bin], ranks: Sequence[int], rank: int) -> float:
    """Return the sample of that rank, from 0; within a bin they count as evenly spread."""
    index = bisect_right(ranks, rank)
    low, high, count = ordered[index]
    if count == 1:
        return low
    within = rank - (ranks[index] - count)
    return low + (high - low) * within / (count - 1)
