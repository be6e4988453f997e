"""From a type's profile to its ceiling, lease, renewal interval and attempts.

Each value is derived from the one before it, here and nowhere else, so that they never
contradict each other.
"""

from dataclasses import dataclass
from datetime import timedelta

from ..exceptions import shown

LEASE_GRACE = timedelta(seconds=60)
"""How much longer than its ceiling a claim holds: time to notice a timeout and settle it."""

UNLIMITED_LEASE = timedelta(hours=1)
"""The lease, before the cap, of a job without a ceiling."""

LONGEST_RENEWAL = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ExecutionProfile:
    """Optional limits of one job type.

    `max_runtime`: the ceiling of an attempt, as a timedelta or in seconds; 0 means no ceiling,
    None the site's `JOB_TIMEOUT`. `max_attempts`: how often a job may start, None the site's
    `MAX_ATTEMPTS`.
    """

    max_runtime: timedelta | float | None = None
    max_attempts: int | None = None

    def problem(self) -> str | None:
        """Say in words what makes this profile unusable, or None when it is fine."""
        if self.max_runtime is not None:
            expected = unusable_duration(self.max_runtime, longest=MAX_SECONDS)
            if expected is not None:
                return f"max_runtime is {shown(self.max_runtime)}; {expected}"
        if self.max_attempts is not None and (
            isinstance(self.max_attempts, bool)
            or not isinstance(self.max_attempts, int)
            or not 1 <= self.max_attempts <= MAX_ATTEMPTS
        ):
            return (
                f"max_attempts is {shown(self.max_attempts)}; "
                f"expected a whole number from 1 to {MAX_ATTEMPTS}"
            )
        return None


MAX_ATTEMPTS = 32_767
"""The largest attempt budget the job's small integer column can count to."""

MAX_SECONDS = 10 * 365 * 24 * 3600.0
"""Ten years: any longer ceiling is a mistake, and far below what a timedelta overflows at."""


def unusable_duration(value: object, *, longest: float) -> str | None:
    """Say what was expected instead of a value that is no duration; None for a good one.

    A good one is a timedelta or seconds, from 0 to `longest` seconds.
    """
    if isinstance(value, bool) or not isinstance(value, timedelta | int | float):
        return "expected a timedelta or seconds"
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not 0 <= seconds <= longest:  # False for NaN too.
        return "expected 0 or more, and finite"
    return None


def seconds_of(duration: timedelta | float) -> float:
    """Return a duration given as a timedelta or as seconds, in seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def ceiling_for(profile: ExecutionProfile | None, *, job_timeout: timedelta) -> timedelta | None:
    """Return how long an attempt may run: the profile's `max_runtime`, else `job_timeout`.

    None means no ceiling, which is what 0 says in either place.
    """
    runtime = profile.max_runtime if profile is not None else None
    seconds = seconds_of(job_timeout if runtime is None else runtime)
    return timedelta(seconds=seconds) if seconds > 0 else None


def lease_for(ceiling: timedelta | None, *, lease_cap: timedelta | None) -> timedelta:
    """Return how long a claim holds without being renewed: min(ceiling + LEASE_GRACE, cap).

    No ceiling counts as one hour. `lease_cap` None means no cap.
    """
    lease = UNLIMITED_LEASE if ceiling is None else ceiling + LEASE_GRACE
    return lease if lease_cap is None else min(lease, lease_cap)


def renew_interval_for(lease: timedelta) -> timedelta:
    """Return how often a claim with this lease is renewed: a third of it, at most 60 s."""
    return min(lease / 3, LONGEST_RENEWAL)


def max_attempts_for(profile: ExecutionProfile | None, *, default: int) -> int:
    """Return how often a job may start: the profile's `max_attempts`, else `default`."""
    if profile is None or profile.max_attempts is None:
        return default
    return profile.max_attempts
