"""When a schedule ticks, and which of the ticks that passed become jobs.

Times are aware; the caller brings them along.
"""

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from ..cron import ticks_after
from ..states import CatchUp

TICK_GRACE = timedelta(seconds=60)
"""A tick this young is not missed: it is about to run, whatever the catch-up policy."""

FIRST_LOOK_BACK = timedelta(hours=1)

INSTANT = timedelta(microseconds=1)


def next_tick(cron: str, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Return the first tick later than `moment`; None when there is none for fifty years."""
    return next(ticks_after(cron, zone, moment), None)


def ticks_to_run(
    cron: str, zone: ZoneInfo, first: datetime, now: datetime, *, catch_up: str, limit: int
) -> list[datetime]:
    """Return the ticks from `first` to `now` that get a job each, oldest first.

    skip: the last one, if it is younger than TICK_GRACE. once: the last one. all: the last
    `limit` ones.
    """
    if catch_up == CatchUp.ALL:
        return last_ticks(cron, zone, first, now, limit)
    latest = last_ticks(cron, zone, first, now, 1)
    if catch_up == CatchUp.SKIP:
        return [tick for tick in latest if now - tick < TICK_GRACE]
    return latest


def last_ticks(
    cron: str, zone: ZoneInfo, first: datetime, now: datetime, count: int
) -> list[datetime]:
    """Return the last `count` ticks from `first` to `now`, oldest first.

    Looks back by growing steps, so that a long absence of a busy schedule costs little.
    """
    look_back = FIRST_LOOK_BACK
    while True:
        since = max(first, now - look_back)
        found = deque(ticks_between(cron, zone, since, now), maxlen=count)
        if len(found) == count or since == first:
            return list(found)
        look_back *= 4


def ticks_between(cron: str, zone: ZoneInfo, first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the ticks from `first` to `last`, both included."""
    ticks = ticks_after(cron, zone, first - INSTANT)
    return takewhile(lambda tick: tick <= last, ticks)
