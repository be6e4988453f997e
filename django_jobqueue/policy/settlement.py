"""From how an attempt ended to what is written about it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..exceptions import PermanentError
from ..states import Attempt, Changes, Claim, Decision, JobStatus, SettleOutcome
from .backoff import equal_jitter
from .rate_limit import retry_after_of


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The budget of a job and the spacing of its attempts."""

    max_attempts: int
    base: timedelta
    cap: timedelta


@dataclass(frozen=True, slots=True)
class Ending:
    """How `process` ended: with a result, or with an exception."""

    result: Any = None
    error: BaseException | None = None


def decide(
    claim: Claim, attempt: Attempt, ending: Ending, limits: RetryLimits, *, r: float
) -> Decision:
    """Return the decision for an attempt: succeeded, failed, or retried after a delay.

    `attempt` carries the report of the error, if there was one. `r` in [0, 1] places the delay
    within its jitter. A `PermanentError` fails the job ahead of every budget; any other error
    retries while attempts are left, no sooner than a `RateLimitError` asks.
    """
    error = ending.error
    if error is None:
        changes = Changes(JobStatus.SUCCEEDED, result=ending.result)
        return Decision(claim, SettleOutcome.SUCCEEDED, changes, attempt)

    last_error = attempt.error.last_error if attempt.error else type(error).__name__
    if isinstance(error, PermanentError) or attempt.number >= limits.max_attempts:
        changes = Changes(JobStatus.FAILED, last_error=last_error)
        return Decision(claim, SettleOutcome.FAILED, changes, attempt)

    delay = equal_jitter(
        attempt.number,
        base=limits.base,
        cap=limits.cap,
        r=r,
        retry_after=retry_after_of(error),
    )
    changes = Changes(JobStatus.PENDING, last_error=last_error, delay=delay)
    return Decision(claim, SettleOutcome.RETRY_SCHEDULED, changes, attempt)
