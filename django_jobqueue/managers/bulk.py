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

from django.db import DatabaseError

from ..database import Operating
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


class Sweep:
    """A transition on its way over a set of jobs.

    `eligible`: what may be changed, read where it is written, in this order. `change` is called
    with some of them, locked, in a transaction of its own, if they are in `matching` still.
    """

    def __init__(
        self,
        operating: Operating,
        eligible: "JobQuerySet",
        matching: "JobQuerySet",
        change: Callable[[Sequence[UUID]], Batch],
    ) -> None:
        self._operating = operating
        self._eligible = eligible
        self._matching = matching
        self._change = change
        self._done = 0
        self._reasons: Counter[SkipReason] = Counter()
        self._locked = 0

    def run(
        self, passed_over: Mapping[SkipReason, int], *, limit: int, within: timedelta
    ) -> BulkReport:
        """Change up to `limit` jobs, batch by batch, and report.

        `passed_over`: the jobs that were asked for and are not eligible. What the database
        refuses after the first batch ends the sweep, and is reported with what was done.
        """
        ends_at = time.monotonic() + within.total_seconds()
        self._reasons.update(passed_over)
        ids = list(self._eligible.values_list("pk", flat=True)[:limit])
        tried = 0
        for batch_ids in batches(ids, BULK_BATCH):
            try:
                self._take(batch_ids)
            except DatabaseError as error:
                if not tried or self._operating.connection.in_atomic_block:
                    raise
                return self._report(len(ids) - tried, error)
            tried += len(batch_ids)
            if time.monotonic() >= ends_at:
                return self._report(count_others(self._eligible, self._locked))
        all_tried = len(ids) < limit
        return self._report(0 if all_tried else count_others(self._eligible, self._locked))

    def _take(self, ids: Sequence[UUID]) -> None:
        batch = self._operating.with_locked(self._matching, ids, self._change_some)
        skipped = dict(batch.skipped)
        unchanged = [i for i in ids if i not in batch.done and i not in skipped]
        skipped |= looked_at_alone(self._eligible, unchanged)
        self._done += len(batch.done)
        self._reasons.update(skipped.values())
        self._locked += sum(reason is SkipReason.LOCKED for reason in skipped.values())

    def _change_some(self, ids: Sequence[UUID]) -> Batch:
        return self._change(ids) if ids else Batch(set())

    def _report(self, remaining: int, error: DatabaseError | None = None) -> BulkReport:
        reasons = {reason: count for reason, count in self._reasons.items() if count}
        return BulkReport(self._done, reasons, remaining, error)


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
