"""Durations as people say them, translated."""

from datetime import timedelta

from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

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
        return ngettext("%(count)s second", "%(count)s seconds", count) % {"count": count}
    if seconds < 2 * HOUR - HOUR / 2:
        count = round(seconds / MINUTE)
        return ngettext("%(count)s minute", "%(count)s minutes", count) % {"count": count}
    if seconds < 2 * DAY:
        count = round(seconds / HOUR)
        return ngettext("%(count)s hour", "%(count)s hours", count) % {"count": count}
    count = round(seconds / DAY)
    return ngettext("%(count)s day", "%(count)s days", count) % {"count": count}


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
