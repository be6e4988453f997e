"""What an exception says about a provider's rate limit."""

from datetime import timedelta

from ..exceptions import RateLimitError

LONGEST_WAIT = timedelta(days=30)
"""A provider that asks for more is not believed beyond this."""


def retry_after_of(error: BaseException) -> timedelta | None:
    """Return how long a `RateLimitError` asks to wait, or None. Never raises."""
    if not isinstance(error, RateLimitError):
        return None
    try:
        seconds = error.retry_after
    except Exception:  # noqa: BLE001 (somebody's subclass)
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds < float("inf"):  # False for NaN too.
        return None
    return min(timedelta(seconds=min(seconds, LONGEST_WAIT.total_seconds())), LONGEST_WAIT)
