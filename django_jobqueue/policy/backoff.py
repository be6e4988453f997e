"""How long a job waits before its next attempt."""

from datetime import timedelta


def equal_jitter(
    attempt: int,
    *,
    base: timedelta,
    cap: timedelta,
    r: float,
    retry_after: timedelta | None = None,
) -> timedelta:
    """Return the delay after failed attempt number `attempt` (1 for the first).

    Half of the exponential step `e = min(cap, base * 2**(attempt - 1))` is certain, the other
    half is scaled by `r` in [0, 1]; a provider's `retry_after` is a floor. The formula is the
    "equal jitter" of Marc Brooker, "Exponential Backoff and Jitter", 2015.
    """
    # A float exponent overflows at 1024; a step beyond the cap is the cap anyway.
    doublings = min(max(attempt, 1) - 1, 64)
    step = min(cap.total_seconds(), base.total_seconds() * 2.0**doublings)
    delay = timedelta(seconds=step / 2 + r * step / 2)
    return max(delay, retry_after) if retry_after is not None else delay
