"""From ticks that are due to jobs: one for each, whatever number of workers looks.

A tick and its jobs are one transaction. The row is locked, where the database can, and in any
case the tick is moved by a conditional UPDATE before a job is inserted: whoever loses that race
has inserted nothing.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.db import connections, models, transaction
from django.db.models import Q
from django.utils import timezone

from ..conf import times_are_aware
from ..cron import problems_of, zone_of
from ..database.clock import database_clock, database_now
from ..database.errors import retry_conflicts
from ..enqueueing import LENGTHS, JobRequest
from ..exceptions import InvalidSchedule
from ..managers import JobManager
from ..models import Job, Schedule
from ..policy.ticks import next_tick, ticks_to_run


class Agenda(NamedTuple):
    """What the schedules ask for now."""

    due: list[int]
    """The keys of those to look at: a tick has come, or none is known yet."""

    next_seconds: float | None
    """In how many seconds the next tick comes; None when none is known."""


def agenda(using: str, declared: Collection[str]) -> Agenda:
    """Return what there is to do and when to look again, in one look.

    Of the schedules declared in code, only those that this process declares: another release
    knows better, or the code is gone.
    """
    rows = ours(using, declared).order_by("next_tick_at", "pk")
    clock = database_clock(connections[using])
    due, coming = [], []
    for key, tick_at, paused, now in rows.values_list("pk", "next_tick_at", "paused", clock):
        if tick_at is None or tick_at <= now:
            due.append(key)
        elif not paused:
            coming.append((tick_at - now).total_seconds())
    return Agenda(due, min(coming, default=None))


def fire(manager: JobManager, key: int) -> list[Job]:
    """Make the jobs of one schedule that are due, and note its next tick; return the jobs.

    Nothing when another worker was faster. Raises InvalidSchedule for a row that cannot be used.
    """
    using = manager.write_alias

    def run() -> list[Job]:
        with transaction.atomic(using=using):
            row = locked(using, key)
            return [] if row is None else fire_locked(manager, row)

    return retry_conflicts(connections[using], run)


def ours(using: str, declared: Collection[str]) -> models.QuerySet[Schedule]:
    """Return the schedules that this process may fire."""
    rows = Schedule._default_manager.using(using)
    return rows.filter(Q(declared_in_code=False) | Q(name__in=declared))


def locked(using: str, key: int) -> Schedule | None:
    """Return the row, locked where the database can; None when it is locked by somebody."""
    rows = Schedule._default_manager.using(using).filter(pk=key)
    features = connections[using].features
    if features.has_select_for_update:
        rows = rows.select_for_update(skip_locked=features.has_select_for_update_skip_locked)
    return rows.first()


def fire_locked(manager: JobManager, row: Schedule) -> list[Job]:
    """Fire a schedule inside a transaction."""
    using = manager.write_alias
    now = instant(database_now(connections[using]))
    known = row.next_tick_at
    if known is not None and instant(known) > now:
        return []  # Another worker fired it between our look and the lock.
    for problem in problems_of(row.cron, row.timezone, row.limit).values():
        raise InvalidSchedule(problem)
    zone = zone_of(row.timezone)
    ticks = missed_and_due(row, zone, now)
    following = next_tick(row.cron, zone, now)
    if following is None:
        raise InvalidSchedule(f"cron is {row.cron!r}, which names no time from now on")

    changes = {"next_tick_at": stored(following)}
    if ticks:
        changes["last_tick_at"] = stored(ticks[-1])
    rows = Schedule._default_manager.using(using).filter(pk=row.pk, next_tick_at=known)
    if not rows.update(**changes):
        return []
    return manager.enqueue_many(request(row, tick) for tick in ticks)


def missed_and_due(row: Schedule, zone: ZoneInfo, now: datetime) -> list[datetime]:
    """Return the ticks of a row that get a job now. Those of a pause get none."""
    if row.next_tick_at is None or row.paused:
        return []
    ticks = ticks_to_run(
        row.cron, zone, instant(row.next_tick_at), now, catch_up=row.catch_up, limit=row.limit
    )
    if row.last_tick_at is None:
        return ticks
    last = instant(row.last_tick_at)
    return [tick for tick in ticks if tick > last]


def request(row: Schedule, tick: datetime) -> JobRequest:
    """Return the job of one tick; its dedup key is that of the schedule and the tick."""
    return JobRequest(
        row.type,
        row.payload,
        queue=row.queue,
        priority=row.priority,
        dedup_key=f"schedule:{row.name}:{tick.isoformat()}",
        reason=f"schedule {row.name}"[: LENGTHS["reason"]],
    )


def instant(moment: datetime) -> datetime:
    """Return a column's time as an aware one."""
    if timezone.is_aware(moment):
        return moment
    return timezone.make_aware(moment, timezone.get_default_timezone())


def stored(moment: datetime) -> datetime:
    """Return an aware time as the columns of this site hold it."""
    if times_are_aware():
        return moment
    return timezone.make_naive(moment, timezone.get_default_timezone())
