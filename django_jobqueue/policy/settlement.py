"""From how an attempt ended to what is written about it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..exceptions import PermanentError
from ..states import Attempt, Changes, Claim, Decision, ErrorReport, JobStatus, SettleOutcome
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
    """How `process` ended: with a result, or with an exception and its storable report."""

    result: Any = None
    error: BaseException | None = None
    report: ErrorReport | None = None


def decide(claim: Claim, attempt: Attempt, ending: Ending, limits: RetryLimits, *, r: float) -> Decision:
    """Return the decision for an attempt: succeeded, failed, or retried after a delay.

    `r` in [0, 1] places the delay within its jitter. A `PermanentError` fails the job ahead of
    every budget; any other error retries while attempts are left, no sooner than a
    `RateLimitError` asks.
    """
    if ending.error is None:
        changes = Changes(JobStatus.SUCCEEDED, result=ending.result)
        return Decision(claim, SettleOutcome.SUCCEEDED, changes, attempt)

    last_error = ending.report.summary if ending.report else type(ending.error).__name__
    if isinstance(ending.error, PermanentError) or attempt.number >= limits.max_attempts:
        changes = Changes(JobStatus.FAILED, last_error=last_error)
        return Decision(claim, SettleOutcome.FAILED, changes, attempt)

    delay = equal_jitter(
        attempt.number,
        base=limits.base,
        cap=limits.cap,
        r=r,
        retry_after=retry_after_of(ending.error),
    )
    changes = Changes(JobStatus.PENDING, last_error=last_error, delay=delay)
    return Decision(claim, SettleOutcome.RETRY_SCHEDULED, changes, attempt)
