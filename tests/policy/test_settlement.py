import math
import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue import PermanentError, RateLimitError
from django_jobqueue.exceptions import HandlerNotFound, JobTimeoutError
from django_jobqueue.policy import Ending, RetryLimits, decide, equal_jitter
from django_jobqueue.policy.rate_limit import LONGEST_WAIT
from django_jobqueue.states import Attempt, Claim, ErrorReport, JobStatus, SettleOutcome

CLAIM = Claim(uuid.uuid4(), uuid.uuid4())
BASE, CAP = timedelta(seconds=2), timedelta(seconds=60)

budgets = st.integers(1, 100)
numbers = st.integers(1, 200)
shares = st.floats(0, 1)


def attempt(number=1, error=None):
    report = error and ErrorReport(f"builtins.{type(error).__name__}", str(error))
    return Attempt(number, "host:1:0", None, report)


def decided(error, *, number=1, max_attempts=3, r=0.5):
    limits = RetryLimits(max_attempts, BASE, CAP)
    return decide(CLAIM, attempt(number, error), Ending(error=error), limits, r=r)


@given(number=numbers, budget=budgets, result=st.none() | st.integers() | st.lists(st.text()))
def test_success_is_success_whatever_the_budget(number, budget, result):
    limits = RetryLimits(budget, BASE, CAP)

    decision = decide(CLAIM, attempt(number), Ending(result), limits, r=0)

    assert decision.outcome is SettleOutcome.SUCCEEDED
    assert decision.changes.status is JobStatus.SUCCEEDED
    assert decision.changes.result == result
    assert decision.changes.last_error is None
    assert decision.changes.delay is None


@given(number=numbers, budget=budgets, r=shares)
def test_an_error_is_retried_while_attempts_are_left(number, budget, r):
    decision = decided(ValueError("as asked"), number=number, max_attempts=budget, r=r)

    if number < budget:
        assert decision.outcome is SettleOutcome.RETRY_SCHEDULED
        assert decision.changes.status is JobStatus.PENDING
        assert decision.changes.delay == equal_jitter(number, base=BASE, cap=CAP, r=r)
    else:
        assert decision.outcome is SettleOutcome.FAILED
        assert decision.changes.status is JobStatus.FAILED
        assert decision.changes.delay is None
    assert decision.changes.last_error == "ValueError: as asked"
    assert decision.changes.attempts is None


@given(number=numbers, budget=budgets)
@pytest.mark.parametrize("error", [PermanentError("no"), HandlerNotFound("no")])
def test_a_permanent_error_fails_ahead_of_every_budget(error, number, budget):
    decision = decided(error, number=number, max_attempts=budget)

    assert decision.outcome is SettleOutcome.FAILED
    assert decision.changes.last_error == f"{type(error).__name__}: no"


@pytest.mark.parametrize(
    "error",
    [
        JobTimeoutError(uuid.uuid4(), "test.echo", timedelta(seconds=3)),
        SystemExit(3),
        KeyboardInterrupt(),
        RateLimitError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_other_error_is_an_ordinary_failure(error):
    assert decided(error).outcome is SettleOutcome.RETRY_SCHEDULED
    assert decided(error, number=3).outcome is SettleOutcome.FAILED


@given(seconds=st.floats(0, 10**6), r=shares)
def test_a_provider_s_wait_is_a_floor_of_the_delay(seconds, r):
    plain = decided(RateLimitError(), r=r).changes.delay

    delay = decided(RateLimitError(retry_after=seconds), r=r).changes.delay

    assert delay == max(plain, timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [math.nan, -1, -math.inf, math.inf, None, "soon"])
def test_a_senseless_wait_leaves_the_ordinary_delay(seconds):
    assert decided(RateLimitError(retry_after=seconds)).changes.delay == equal_jitter(
        1, base=BASE, cap=CAP, r=0.5
    )


@pytest.mark.parametrize("seconds", [1e300, pytest.param(10**400, id="huge")])
def test_an_absurd_wait_is_cut(seconds):
    assert decided(RateLimitError(retry_after=seconds)).changes.delay == LONGEST_WAIT


def test_a_decision_carries_its_claim_and_its_attempt():
    error = ValueError("as asked")

    decision = decided(error)

    assert decision.claim == CLAIM
    assert decision.attempt == attempt(1, error)


def test_without_a_report_the_error_is_named_by_its_class():
    limits = RetryLimits(3, BASE, CAP)

    decision = decide(CLAIM, attempt(), Ending(error=ValueError("secret")), limits, r=0)

    assert decision.changes.last_error == "ValueError"
