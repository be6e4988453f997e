"""How a transition of operators goes over a set of jobs: in bounded batches, within a time.

A batch is a transaction of its own, so what was done stays done when the time is over.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from ..ids import batches
from ..states import COUNT_LIMIT, BulkReport, JobStatus, SkipReason

if TYPE_CHECKING:
    from ..querysets import JobQuerySet

BULK_LIMIT = 10_000
"""How many jobs one call tries."""

BULK_BATCH = 500
BULK_TIME = timedelta(seconds=10)
"""A call begins no further batch after this long, so that a web request ends."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a transition did with some jobs: those it changed, and why it left some others."""

    done: set[UUID]
    skipped: Mapping[UUID, SkipReason] = field(default_factory=dict)


def sweep(
    eligible: "JobQuerySet",
    change: Callable[[Sequence[UUID]], Batch],
    passed_over: Mapping[SkipReason, int],
    *,
    limit: int,
    within: timedelta,
) -> BulkReport:
    """Change up to `limit` of the eligible jobs, batch by batch, and report.

    `eligible` is read where it is written, and its order is kept. `passed_over`: the jobs that
    were asked for and are not eligible.
    """
    ends_at = time.monotonic() + within.total_seconds()
    done, reasons, still_match = 0, Counter(passed_over), 0
    tried_all = False
    ids = list(eligible.values_list("pk", flat=True)[:limit])
    for batch_ids in batches(ids, BULK_BATCH):
        batch = change(batch_ids)
        skipped = dict(batch.skipped)
        unchanged = [i for i in batch_ids if i not in batch.done and i not in skipped]
        skipped |= looked_at_alone(eligible, unchanged)
        done += len(batch.done)
        reasons.update(skipped.values())
        still_match += sum(reason is SkipReason.LOCKED for reason in skipped.values())
        if time.monotonic() >= ends_at:
            break
    else:
        tried_all = len(ids) < limit
    remaining = 0 if tried_all else count_others(eligible, still_match)
    return BulkReport(done, {reason: n for reason, n in reasons.items() if n}, remaining)


def looked_at_alone(jobs: "JobQuerySet", ids: Sequence[UUID]) -> dict[UUID, SkipReason]:
    """Say why a transition left jobs that matched a moment ago, by id."""
    if not ids:
        return {}
    rows = jobs.model._default_manager.using(jobs.db)
    matching = set(jobs.filter(pk__in=ids).values_list("pk", flat=True))
    statuses = dict(rows.filter(pk__in=ids).values_list("pk", "status"))
    return {job_id: reason_for(statuses.get(job_id), job_id in matching) for job_id in ids}


def reason_for(status: str | None, matches: bool) -> SkipReason:  # noqa: FBT001 (an answer)
    """Return why a job of that status, None for no more, was left."""
    if status is None:
        return SkipReason.GONE
    if matches:
        return SkipReason.LOCKED
    return SkipReason.RUNNING if status == JobStatus.RUNNING else SkipReason.STATE


def count_others(jobs: "JobQuerySet", tried: int) -> int:
    """Count the jobs beside that many that were tried, as far as people are told."""
    return min(max(jobs.count_up_to(COUNT_LIMIT + tried) - tried, 0), COUNT_LIMIT)
