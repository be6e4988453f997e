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
from .rate_limit import RateLimit, classify_rate_limit, parse_retry_after
from .retention import Keeping, keepings, retention_problem
from .settlement import Ending, RateLimitBudget, RetryLimits, decide, defer

__all__ = [
    "LEASE_GRACE",
    "Ending",
    "ExecutionProfile",
    "Keeping",
    "RateLimit",
    "RateLimitBudget",
    "RetryLimits",
    "ceiling_for",
    "classify_rate_limit",
    "decide",
    "defer",
    "equal_jitter",
    "keepings",
    "lease_for",
    "max_attempts_for",
    "parse_retry_after",
    "renew_interval_for",
    "retention_problem",
]
