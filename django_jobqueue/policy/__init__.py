"""The queue's rules as pure functions: values in, values out.

No ORM, no settings, no clock, no randomness: whoever calls brings them along.
"""

from .backoff import equal_jitter
from .profile import (
    LEASE_GRACE,
    ExecutionProfile,
    ceiling_for,
    lease_for,
    max_attempts_for,
    renew_interval_for,
)
from .settlement import Ending, RetryLimits, decide

__all__ = [
    "LEASE_GRACE",
    "Ending",
    "ExecutionProfile",
    "RetryLimits",
    "ceiling_for",
    "decide",
    "equal_jitter",
    "lease_for",
    "max_attempts_for",
    "renew_interval_for",
]
