"""What small loops do: promote, reap, purge."""

from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from django.db import connections
from django.db.models import Max, Min, Q

from ..database import ReapRequest
from ..database.clock import database_clock
from ..hints import Hints
from ..ids import batches, ids_of
from ..querysets import LONGEST_LEASE_SECONDS, JobQuerySet
from ..states import Reaped
from .base import TransitionManager
from .operations import ERASE_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from ..models import Job

PROMOTE_BATCH = 1000
REAP_BATCH = 200

STRETCH = 10_000
"""How many ended jobs a statement of the purge reads that looks for some of them."""

SENSIBLE_LEASES = (0.0, LONGEST_LEASE_SECONDS)


class UpkeepTransitions(TransitionManager):
    """The transitions that keep the table in order."""

    def promote(
        self,
        limit: int = PROMOTE_BATCH,
        *,
        hints: Hints | None = None,
        jobs: "Job | UUID | str | Iterable[Job | UUID | str] | None" = None,
    ) -> int:
        """Make up to `limit` scheduled jobs ready whose time has come; return how many.

        `hints` of a claimer are lowered to them, so that it finds them at once. `jobs`: only
        these.
        """
        places = self._database().promote(limit, None if jobs is None else ids_of(jobs))
        if hints is not None:
            hints.lower(places)
        return len(places)

    def seconds_until_due(self) -> float | None:
        """Return in how many seconds the next scheduled job is due, by the database's clock.

        Zero or less: it is due. None: nothing is scheduled.
        """
        clock = database_clock(connections[self.write_alias])
        scheduled = self.on_write_alias().scheduled().order_by("scheduled_for")
        first = scheduled.values_list("scheduled_for", clock).first()
        if first is None:
            return None
        due_at, now = first
        return float((due_at - now).total_seconds())

    def reap(
        self,
        stuck_threshold: timedelta,
        max_attempts: int,
        *,
        jobs: "Job | UUID | str | Iterable[Job | UUID | str] | None" = None,
        as_of: datetime | None = None,
        limit: int = REAP_BATCH,
    ) -> list[Reaped]:
        """End up to `limit` dead claims, the longest expired first; return what became of each.

        A claim is dead when its job shows a reaper signal (see `JobQuerySet.stuck`); every write
        asserts that again. A lease must have run out by `as_of`, a time of the database's clock.
        While the row's own `max_attempts`, else the one given, leaves a budget, the job waits
        again, its attempt charged; with the budget spent it fails. Each gets an attempt row with
        the outcome `reaped`. Rows that somebody has locked are left alone.

        `jobs`: only these, however many ("reset stuck"). Whoever calls sends `job_settled` for
        those that failed: see `signals.send_reaped`.
        """
        request = ReapRequest(stuck_threshold, max_attempts, as_of, limit)
        database, running = self._database(), self.on_write_alias()
        if jobs is None:
            return database.reap(running, request)
        chosen = batches(ids_of(jobs), limit)
        return [r for ids in chosen for r in database.reap(running.filter(pk__in=ids), request)]

    def running_leases(self) -> tuple[timedelta, timedelta] | None:
        """Return the shortest and the longest lease that running jobs were granted, if any."""
        leases = self.on_write_alias().running().filter(lease_seconds__range=SENSIBLE_LEASES)
        found = leases.aggregate(shortest=Min("lease_seconds"), longest=Max("lease_seconds"))
        if found["longest"] is None:
            return None
        return timedelta(seconds=found["shortest"]), timedelta(seconds=found["longest"])

    def purge(
        self,
        older_than: timedelta,
        *,
        types: "Iterable[str] | None" = None,
        except_types: "Iterable[str]" = (),
        batch_size: int = ERASE_BATCH,
        batches: int | None = None,
        stop: "Callable[[], bool]" = lambda: False,
    ) -> int:
        """Delete terminal jobs that ended longer ago than that; return how many.

        `types`: only these (None: all), and none of `except_types`. Works in transactions of at
        most `batch_size` jobs, the oldest first, up to `batches` of them (None: until nothing is
        left) and until `stop`, asked before each, is True. The rollup counts in the same
        transaction exactly what was deleted, so totals never change. Jobs that somebody has
        locked stay until the next time.
        """
        types = None if types is None else tuple(types)
        spared = tuple(except_types)
        if types == ():
            return 0
        moment = self.now() - older_than
        ended = self.on_write_alias().finished_before(moment)
        old = self.on_write_alias().finished_before(moment, types=types, except_types=spared)
        parts = [old] if types is None and not spared else map(old.filter, stretches(ended))
        return sum(islice(self._erase_all(parts, batch_size, stop), batches))

    def _erase_all(
        self, parts: "Iterable[JobQuerySet]", batch_size: int, stop: "Callable[[], bool]"
    ) -> "Iterator[int]":
        """Delete ended jobs, the oldest first, until `stop`; yield the size of each batch."""
        for part in parts:
            left, is_full = part, True
            while is_full:
                if stop():
                    return
                erased = self._database().erase(left.order_by("finished_at")[:batch_size])
                if not erased:
                    break
                yield len(erased)
                is_full = len(erased) == batch_size
                # What ended before and is still there is kept, and not to be read again for
                # every batch. More may have ended at the very same moment.
                left = part.filter(finished_at__gte=max(filter(None, erased.values())))


def stretches(ended: JobQuerySet) -> "Iterator[Q]":
    """Cut ended jobs, the oldest first, into stretches of about `STRETCH`; yield how to find each.

    A statement that looks for few among many then reads no more than that, however many are kept:
    it meets no limit on the time of statements, and no snapshot is held for long.
    """
    beyond = Q()
    while True:
        moments = ended.filter(beyond).order_by("finished_at").values_list("finished_at", flat=True)
        edge = moments[STRETCH - 1 : STRETCH].first()
        if edge is None:
            yield beyond
            return
        yield beyond & Q(finished_at__lte=edge)
        beyond = Q(finished_at__gt=edge)
