"""From how an attempt ended to what is written about it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..exceptions import JobTimeoutError, PermanentError
from ..states import Attempt, Changes, Claim, Decision, JobStatus, SettleOutcome
from .backoff import equal_jitter
from .rate_limit import RateLimit, classify_rate_limit, is_a

MOST_HITS = 32_767
"""As far as the job's small integer column counts."""


@dataclass(frozen=True, slots=True)
class RateLimitBudget:
    """How many answers of a rate limit a job may get, and the spacing after them."""

    max_hits: int
    base: timedelta
    cap: timedelta


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The budgets of a job and the spacing of its attempts."""

    max_attempts: int
    base: timedelta
    cap: timedelta
    rate_limit: RateLimitBudget


@dataclass(frozen=True, slots=True)
class Ending:
    """How `process` ended: with a result, or with an exception.

    `rate_limited`: whoever ran the job knows the exception for a rate limit, whatever it looks
    like here.
    """

    result: Any = None
    error: BaseException | None = None
    rate_limited: bool = False


def decide(
    claim: Claim,
    attempt: Attempt,
    ending: Ending,
    limits: RetryLimits,
    *,
    r: float,
    hits: int,
    now: datetime | None,
) -> Decision:
    """Return the decision for an attempt: succeeded, failed, deferred or retried.

    `attempt` carries the report of the error, if there was one. `r` in [0, 1] places a delay
    within its jitter. `hits` is how often the job met a rate limit before; `now` (aware) is for
    a Retry-After that is a date.

    An error is asked in this order: is it permanent, then the job fails, whatever is left of its
    budgets; is it a rate limit, then the job is deferred, up to its own budget; are attempts
    left, then it is retried; else it fails. A `JobTimeoutError` is never a rate limit.
    """
    error = ending.error
    if error is None:
        changes = Changes(JobStatus.SUCCEEDED, result=ending.result)
        return Decision(claim, SettleOutcome.SUCCEEDED, changes, attempt)
    if is_a(error, PermanentError):
        return failed(claim, attempt, error)
    limit = rate_limit_of(error, flagged=ending.rate_limited, now=now)
    if limit is not None:
        return rate_limited(claim, attempt, error, limit, limits.rate_limit, r=r, hits=hits + 1)
    if attempt.number < limits.max_attempts:
        return retried(claim, attempt, error, limits, r=r)
    return failed(claim, attempt, error)


def defer(claim: Claim, attempt: Attempt, wait: timedelta) -> Decision:
    """Return the decision for a job that was claimed while its provider's gate closed.

    Its handler was not called: the attempt is given back, and no hit is counted.
    """
    changes = Changes(JobStatus.PENDING, delay=wait, attempts=given_back(attempt))
    return Decision(claim, SettleOutcome.RATE_LIMIT_DEFERRED, changes, attempt)


def rate_limit_of(error: BaseException, *, flagged: bool, now: datetime | None) -> RateLimit | None:
    """Return the rate limit that the error speaks of, or else the one it is flagged with."""
    limit = classify_rate_limit(error, now=now)
    if limit is None and flagged and not is_a(error, JobTimeoutError):
        return RateLimit()
    return limit


def rate_limited(
    claim: Claim,
    attempt: Attempt,
    error: BaseException,
    limit: RateLimit,
    budget: RateLimitBudget,
    *,
    r: float,
    hits: int,
) -> Decision:
    """Return the decision for the `hits`-th rate limit: deferred, or failed beyond the budget.

    Either way the provider is to be left alone: for as long as it said, else for our own wait.
    """
    wait = equal_jitter(hits, base=budget.base, cap=budget.cap, r=r, retry_after=limit.retry_after)
    deferred = hits <= budget.max_hits
    changes = Changes(
        JobStatus.PENDING if deferred else JobStatus.FAILED,
        last_error=last_error_of(attempt, error),
        delay=wait if deferred else None,
        attempts=given_back(attempt) if deferred else None,
        rate_limit_hits=min(hits, MOST_HITS),
        rate_limited=True,
    )
    outcome = SettleOutcome.RATE_LIMIT_DEFERRED if deferred else SettleOutcome.FAILED
    return Decision(claim, outcome, changes, attempt, trip=limit.retry_after or wait)


def retried(
    claim: Claim, attempt: Attempt, error: BaseException, limits: RetryLimits, *, r: float
) -> Decision:
    """Return the decision to try again after a backoff."""
    changes = Changes(
        JobStatus.PENDING,
        last_error=last_error_of(attempt, error),
        delay=equal_jitter(attempt.number, base=limits.base, cap=limits.cap, r=r),
    )
    return Decision(claim, SettleOutcome.RETRY_SCHEDULED, changes, attempt)


def failed(claim: Claim, attempt: Attempt, error: BaseException) -> Decision:
    """Return the decision to give up."""
    changes = Changes(JobStatus.FAILED, last_error=last_error_of(attempt, error))
    return Decision(claim, SettleOutcome.FAILED, changes, attempt)


def given_back(attempt: Attempt) -> int:
    """Return `attempts` without this attempt: a value, so that writing it twice is once."""
    return max(attempt.number - 1, 0)


def last_error_of(attempt: Attempt, error: BaseException) -> str:
    """Return what the job keeps of an error."""
    return attempt.error.last_error if attempt.error else type(error).__name__
