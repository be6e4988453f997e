"""Over how long insights look back."""

from datetime import timedelta

from ..exceptions import InvalidWindow, shown

DEFAULT_WINDOW = timedelta(days=7)
LONGEST_WINDOW = timedelta(days=90)


def checked_window(window: timedelta) -> timedelta:
    """Return the window if it can be asked for: longer than nothing, at most 90 days."""
    if not isinstance(window, timedelta):
        raise InvalidWindow(f"window is {shown(window)}; expected a timedelta.")
    if not timedelta(0) < window <= LONGEST_WINDOW:
        raise InvalidWindow(
            f"window is {window}; expected more than nothing and at most {LONGEST_WINDOW.days} "
            "days, for which jobs are read one by one."
        )
    return window
