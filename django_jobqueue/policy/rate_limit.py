"""What an exception says about a provider's rate limit."""

import math
from datetime import timedelta

from ..exceptions import RateLimitError

LONGEST_WAIT = timedelta(days=30)
"""A provider that asks for more is not believed beyond this."""


def retry_after_of(error: BaseException) -> timedelta | None:
    """Return how long a `RateLimitError` asks to wait, or None. Never raises."""
    if not isinstance(error, RateLimitError):
        return None
    seconds = error.retry_after
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return timedelta(seconds=min(seconds, LONGEST_WAIT.total_seconds()))
