"""Lengths of time in words, exact enough to compare attempts."""

from datetime import timedelta

from django.utils.formats import number_format
from django.utils.translation import gettext

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def elapsed(duration: timedelta) -> str:
    """Return a length of time in its two largest units: "2 min 5 s", "1.5 s", "20 ms".

    A negative one, by clocks that disagree, counts as none.
    """
    seconds = max(duration.total_seconds(), 0.0)
    whole = int(seconds)
    if seconds < 1:
        return gettext("%(ms)d ms") % {"ms": seconds * 1000}
    if seconds < MINUTE:
        tenths = int(seconds * 10) / 10
        shown = number_format(whole if tenths == whole else tenths)
        return gettext("%(seconds)s s") % {"seconds": shown}
    if seconds < HOUR:
        parts = {"minutes": whole // MINUTE, "seconds": whole % MINUTE}
        return gettext("%(minutes)d min %(seconds)d s") % parts
    if seconds < DAY:
        parts = {"hours": whole // HOUR, "minutes": whole % HOUR // MINUTE}
        return gettext("%(hours)d h %(minutes)d min") % parts
    parts = {"days": whole // DAY, "hours": whole % DAY // HOUR}
    return gettext("%(days)d d %(hours)d h") % parts
