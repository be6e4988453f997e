"""Cron expressions and time zones: what is wrong with one, and the ticks it names.

The rules are cronsim's, those of Debian's cron. Of a job at fixed hours and minutes: a time that
daylight saving leaves out runs once, right after the gap; a time that comes twice runs once, the
first time. Expressions with `*` in hours or minutes follow the time that really passes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS = 5

MOST_CATCH_UP = 1_000
"""The largest catch-up limit: what one transaction may well insert."""

SOME_TIME = datetime(2024, 1, 1, tzinfo=UTC)
"""From where to look whether an expression has any tick at all."""


def problems_of(cron: object, timezone: object, limit: object) -> dict[str, str]:
    """Say what is wrong with a schedule, by the name of the field; empty when nothing is."""
    problems = {
        "cron": cron_problem(cron),
        "timezone": zone_problem(timezone),
        "limit": limit_problem(limit),
    }
    return {field: problem for field, problem in problems.items() if problem}


def cron_problem(expression: object) -> str | None:
    """Say what makes a cron expression unusable, or None."""
    if not isinstance(expression, str):
        return f"cron is {expression!r}; expected a string such as '0 3 * * *'"
    expected = f"cron is {expression!r}; expected minute, hour, day of month, month, day of week"
    if len(expression.split()) != FIELDS:
        return expected
    try:
        next(CronSim(expression, SOME_TIME))
    except StopIteration:
        return f"cron is {expression!r}, which names no time at all"
    except (CronSimError, AssertionError, ValueError, TypeError) as error:
        return f"{expected} ({str(error) or 'unreadable'})"
    return None


def zone_problem(name: object) -> str | None:
    """Say what makes the name of a time zone unusable, or None."""
    try:
        zone_of(name)
    except (TypeError, ValueError, LookupError, OSError):
        return f"timezone is {name!r}; expected a name such as 'UTC' or 'Europe/Berlin'"
    return None


def limit_problem(limit: object) -> str | None:
    """Say what makes a catch-up limit unusable, or None."""
    if isinstance(limit, int) and not isinstance(limit, bool) and 1 <= limit <= MOST_CATCH_UP:
        return None
    return f"limit is {limit!r}; expected a whole number from 1 to {MOST_CATCH_UP}"


def zone_of(name: object) -> ZoneInfo:
    """Return a time zone by its name; raise TypeError, ValueError, LookupError or OSError."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a time zone is named by a string, not {name!r}")
    return ZoneInfo(name)


def ticks_after(expression: str, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    """Yield the ticks later than an aware `moment`, in order, as UTC times.

    Expression and zone must be usable. Ends when there is no tick for fifty years.
    """
    moment = moment.astimezone(UTC)
    latest = moment
    # UTC itself, since cronsim steps through any other zone more slowly.
    start = moment if zone.key == "UTC" else moment.astimezone(zone)
    for wall in CronSim(expression, start):
        tick = wall.astimezone(UTC)
        # In the hour that comes twice, cronsim counts wall times from the first pass.
        if tick > latest:
            latest = tick
            yield tick
