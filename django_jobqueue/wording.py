"""Durations, moments and modes as people say them, translated."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext, ngettext, pgettext

from .states import WorkerMode

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MANY = 100


def in_words(duration: timedelta | float) -> str:
    """Return a duration (a float is seconds) as people say it: "4 minutes", "less than a second".

    Rounded to one unit; from two of a unit on in that unit, so that it is never far off.
    """
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if seconds < 1:
        return gettext("less than a second")
    if seconds < 2 * MINUTE - MINUTE / 2:
        count = round(seconds)
        return counted(ngettext("%(count)s second", "%(count)s seconds", count), count)
    if seconds < 2 * HOUR - HOUR / 2:
        count = round(seconds / MINUTE)
        return counted(ngettext("%(count)s minute", "%(count)s minutes", count), count)
    if seconds < 2 * DAY:
        count = round(seconds / HOUR)
        return counted(ngettext("%(count)s hour", "%(count)s hours", count), count)
    count = round(seconds / DAY)
    return counted(ngettext("%(count)s day", "%(count)s days", count), count)


def measured(seconds: float | None) -> str:
    """Return a measured duration in seconds as a table shows it: "12 ms", "3.4 s", "12 min"."""
    if seconds is None:
        return gettext("none")
    if seconds < 1:
        return gettext("%(number)s ms") % {"number": digits(seconds * 1000)}
    if seconds < 2 * MINUTE:
        return gettext("%(number)s s") % {"number": digits(seconds)}
    if seconds < 2 * HOUR:
        return gettext("%(number)s min") % {"number": digits(seconds / MINUTE)}
    return gettext("%(number)s h") % {"number": digits(seconds / HOUR)}


def digits(number: float) -> str:
    """Return a number with one decimal where it says something."""
    rounded = round(number, 1)
    whole = rounded >= MANY or rounded.is_integer()
    return str(number_format(rounded, 0 if whole else 1))


def estimated(seconds: float) -> str:
    """Return an estimate in seconds as people say it after "about": "1 second" at least."""
    return in_words(max(seconds, 1.0))


def counted(words: str, count: int) -> str:
    """Return words with the count in them, as the reader's language writes it."""
    return words % {"count": number_format(count, force_grouping=True)}


def exact(at: datetime) -> str:
    """Return a moment to the second, in the current time zone, named, as the language writes it."""
    local = local_time(at)
    # Django's own formats leave out the seconds, by which people find a line of a log.
    words = pgettext("format of a date with seconds and zone", "Y-m-d H:i:s T")
    return str(date_format(local, words)).strip()


def local_time(at: datetime) -> datetime:
    """Return a moment in the current time zone; as it is at the ends of time, where it has none."""
    if not timezone.is_aware(at):
        return at
    try:
        return timezone.localtime(at)
    except (OverflowError, ValueError):
        return at


def mode_in_words(mode: str) -> str:
    """Return what a worker's mode is called; as it is when this release knows no such mode."""
    return str(WorkerMode(mode).label) if mode in WorkerMode.values else mode
