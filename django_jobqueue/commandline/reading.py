"""Reads what a person writes: durations, moments, numbers, subjects and ids."""

import argparse
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.utils import timezone

from ..conf import times_are_aware
from ..models import Job
from ..querysets import JobQuerySet
from .word import Refused

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LONGEST = timedelta(days=36500)
MOST_NAMED = 5

FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 1, 1, tzinfo=UTC)
"""Between these a moment fits the columns in every time zone."""

PREFIX = re.compile(r"[0-9a-f-]{1,36}")


def duration(value: str) -> timedelta:
    """Read "30d", "12h", "90m", "45s" or "2w"."""
    found = re.fullmatch(r"(\d{1,9})([smhdw])", value.strip().lower())
    if found is not None:
        seconds = int(found[1]) * UNITS[found[2]]
        if seconds <= LONGEST.total_seconds():
            return timedelta(seconds=seconds)
    raise argparse.ArgumentTypeError(
        f"{value!r}: expected a number and a unit of s, m, h, d or w, such as 30d"
    )


def since(value: str) -> timedelta | datetime:
    """Read a duration before now, or a moment such as 2026-11-30 or 2026-11-30T18:00+01:00.

    A moment without an offset is in the time zone of the site. It is returned as columns hold it.
    """
    try:
        return duration(value)
    except argparse.ArgumentTypeError:
        pass
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{value!r}: expected a duration such as 2h, or a moment such as 2026-11-30T18:00"
        ) from None
    zone = timezone.get_default_timezone()
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, zone)
    if not FIRST <= moment <= LAST:
        raise argparse.ArgumentTypeError(
            f"{value!r}: expected a moment from {FIRST:%Y-%m-%d} to {LAST:%Y-%m-%d}"
        )
    return moment if times_are_aware() else timezone.make_naive(moment, zone)


def text(value: str) -> str:
    """Read what a column of text can hold: an argument may be bytes of another encoding."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{value!r}: expected text in UTF-8") from None
    return value


def subject(value: str) -> tuple[str, str]:
    """Read "type:id"; the id may hold colons."""
    kind, colon, name = text(value).partition(":")
    if not (kind and colon and name):
        raise argparse.ArgumentTypeError(f"{value!r}: expected a type and an id, such as order:7")
    return kind, name


def positive(value: str) -> int:
    """Read a whole number of 1 or more."""
    if value.isdecimal() and len(value) < 10 and int(value) >= 1:  # noqa: PLR2004 (fits a column)
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r}: expected a whole number, 1 or more")


def job_id(value: str) -> str:
    """Read an id, or how one begins."""
    text = value.strip().lower()
    if PREFIX.fullmatch(text) and text.replace("-", ""):
        return text
    raise argparse.ArgumentTypeError(f"{value!r}: expected the id of a job, or how it begins")


def named(jobs: JobQuerySet, prefix: str) -> UUID:
    """Return the id of the one job whose id begins so. Raises Refused for none or several."""
    digits = prefix.replace("-", "")[:32]
    lowest, highest = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    found = list(
        jobs.filter(pk__gte=lowest, pk__lte=highest)
        .order_by("pk")
        .values_list("pk", flat=True)[: MOST_NAMED + 1]
    )
    if not found:
        raise Refused(f"No job's id begins with {prefix}. List them: manage.py jobqueue list")
    if len(found) > 1:
        shown = ", ".join(map(str, found[:MOST_NAMED]))
        more = " and others" if len(found) > MOST_NAMED else ""
        raise Refused(f"The ids of several jobs begin with {prefix}: {shown}{more}. Write more.")
    return found[0]


def all_named(jobs: JobQuerySet, prefixes: list[str]) -> list[UUID]:
    """Return the ids of the jobs that are named, each once."""
    return list(dict.fromkeys(named(jobs, prefix) for prefix in prefixes))


def fits(field: str, value: str, model: type = Job) -> None:
    """Refuse what no column can hold."""
    longest = model._meta.get_field(field).max_length  # type: ignore[attr-defined]
    if not value or "\0" in value or len(value) > longest:
        raise Refused(
            f"The {field} has {len(value)} characters; expected 1 to {longest}, and no NUL."
        )
