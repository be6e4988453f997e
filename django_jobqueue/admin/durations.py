"""Lengths of time in few characters, for columns."""

from datetime import timedelta

from django.utils.translation import gettext

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def short_duration(duration: timedelta) -> str:
    """Return a length of time in its largest whole unit, such as "4 min".

    Under a second it is in milliseconds. A negative one, by clocks that disagree, counts as none.
    """
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < 1:
        return gettext("%(number)d ms") % {"number": seconds * 1000}
    if seconds < MINUTE:
        return gettext("%(number)d s") % {"number": seconds}
    if seconds < HOUR:
        return gettext("%(number)d min") % {"number": seconds // MINUTE}
    if seconds < DAY:
        return gettext("%(number)d h") % {"number": seconds // HOUR}
    return gettext("%(number)d d") % {"number": seconds // DAY}
