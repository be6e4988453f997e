from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobqueue import PermanentError, RateLimitError
from django_jobqueue.exceptions import HandlerNotFound, JobTimeoutError
from django_jobqueue.policy import Ending, RateLimitBudget, RetryLimits, decide, defer
from django_jobqueue.states import Attempt, Changes, Claim, ErrorReport, JobStatus, SettleOutcome
from tests.policy import shapes

CLAIM = Claim(UUID(int=1), UUID(int=2))
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LIMITS = RetryLimits(
    max_attempts=3,
    base=2 * SECOND,
    cap=60 * SECOND,
    rate_limit=RateLimitBudget(max_hits=10, base=30 * SECOND, cap=900 * SECOND),
)
REPORT = ErrorReport("somewhere.SomeError", "as asked")
TIMEOUT = JobTimeoutError(CLAIM.job_id, "reports.build", 60 * SECOND)

relaxed = settings(deadline=None)

fractions = st.floats(0, 1)
numbers = st.integers(0, 32_767)
hit_counts = st.integers(0, 32_767)
durations = st.timedeltas(timedelta(0), timedelta(days=1))
waits = st.none() | st.integers(0, 30 * 24 * 3600)
budgets = st.builds(RateLimitBudget, max_hits=hit_counts, base=durations, cap=durations)
limits = st.builds(
    RetryLimits,
    max_attempts=st.integers(1, 32_767),
    base=durations,
    cap=durations,
    rate_limit=budgets,
)
permanent_errors = st.sampled_from([PermanentError("never"), HandlerNotFound("who?")])
limit_errors = st.sampled_from(
    [
        RateLimitError(),
        shapes.requests_like(429),
        shapes.requests_like(503, **{"Retry-After": "5"}),
        shapes.botocore_like(400, "ThrottlingException"),
    ]
)
ordinary_errors = st.sampled_from([ValueError("no"), SystemExit(1), TIMEOUT, shapes.error()])


def decided(error=None, *, number=1, hits=0, r=0.5, limits=LIMITS, **ending):
    attempt = Attempt(number, "host:1:0", None, REPORT if error else None)
    return decide(CLAIM, attempt, Ending(error=error, **ending), limits, r=r, hits=hits, now=NOW)


def test_a_result_is_a_success():
    decision = decided(result={"pages": 3}, number=3, hits=4)

    assert decision.outcome is SettleOutcome.SUCCEEDED
    assert decision.changes == Changes(JobStatus.SUCCEEDED, result={"pages": 3})
    assert decision.trip is None


class TestOrder:
    @relaxed
    @given(permanent_errors, limits, numbers, hit_counts, st.booleans())
    def test_permanent_comes_first(self, error, limits, number, hits, flag):
        decision = decided(error, number=number, hits=hits, limits=limits, rate_limited=flag)

        assert decision.outcome is SettleOutcome.FAILED
        assert decision.changes == Changes(JobStatus.FAILED, last_error="SomeError: as asked")
        assert decision.trip is None

    def test_permanent_comes_before_a_status_of_its_own(self):
        error = PermanentError("the quota is gone for good")
        error.status_code = 429

        assert decided(error).outcome is SettleOutcome.FAILED

    @relaxed
    @given(limit_errors, numbers)
    def test_a_rate_limit_comes_before_the_attempts(self, error, number):
        assert decided(error, number=number).outcome is SettleOutcome.RATE_LIMIT_DEFERRED

    @relaxed
    @given(ordinary_errors, limits, numbers, hit_counts)
    def test_other_errors_retry_while_attempts_are_left(self, error, limits, number, hits):
        decision = decided(error, number=number, hits=hits, limits=limits)

        if number < limits.max_attempts:
            assert decision.outcome is SettleOutcome.RETRY_SCHEDULED
            assert decision.changes.status is JobStatus.PENDING
        else:
            assert decision.outcome is SettleOutcome.FAILED
            assert decision.changes.status is JobStatus.FAILED
        assert decision.changes.attempts is None
        assert decision.changes.rate_limit_hits is None
        assert not decision.changes.rate_limited
        assert decision.trip is None

    def test_the_callers_flag_makes_an_error_a_rate_limit(self):
        decision = decided(ValueError("a node says so"), rate_limited=True)

        assert decision.outcome is SettleOutcome.RATE_LIMIT_DEFERRED

    def test_a_timeout_is_an_ordinary_failure_even_when_flagged(self):
        assert decided(TIMEOUT, rate_limited=True).outcome is SettleOutcome.RETRY_SCHEDULED
        assert decided(TIMEOUT, number=3, rate_limited=True).outcome is SettleOutcome.FAILED

    def test_an_exception_may_lie_about_its_class(self):
        def getter(self):
            raise RuntimeError("no class")

        error = type("Broken", (Exception,), {"__class__": property(getter)})()

        assert decided(error).outcome is SettleOutcome.RETRY_SCHEDULED


class TestRetry:
    @relaxed
    @given(durations, durations, fractions, st.integers(1, 32_766))
    def test_the_delay_keeps_its_bounds(self, base, cap, r, number):
        limits = replace(LIMITS, max_attempts=32_767, base=base, cap=cap)
        delay = decided(ValueError(), number=number, r=r, limits=limits).changes.delay

        step = min(cap.total_seconds(), base.total_seconds() * 2.0 ** min(number - 1, 64))
        assert step / 2 <= delay.total_seconds() + 1e-5
        assert delay.total_seconds() <= step + 1e-5

    def test_what_ordinary_errors_say_of_a_wait_is_not_heard(self):
        error = shapes.error(status=500, headers={"Retry-After": "3600"})

        assert decided(error, r=1.0).changes.delay == 2 * SECOND


class TestRateLimit:
    @relaxed
    @given(budgets, fractions, waits, hit_counts)
    def test_the_delay_keeps_its_bounds_above_the_floor(self, budget, r, wait, hits):
        limits = replace(LIMITS, rate_limit=budget)
        decision = decided(RateLimitError(retry_after=wait), hits=hits, r=r, limits=limits)

        step = min(budget.cap.total_seconds(), budget.base.total_seconds() * 2.0 ** min(hits, 64))
        if hits + 1 > budget.max_hits:
            assert decision.changes.delay is None
        else:
            delay = decision.changes.delay.total_seconds()
            assert max(wait or 0, step / 2) <= delay + 1e-5
            assert delay <= max(wait or 0, step) + 1e-5

    @pytest.mark.parametrize(
        "error",
        [
            RateLimitError(retry_after=3600),
            shapes.requests_like(429, **{"Retry-After": "3600"}),
            shapes.requests_like(429, **{"Retry-After": "Sun, 01 Mar 2026 13:00:00 GMT"}),
            shapes.botocore_like(400, "Throttling", **{"retry-after": "3600"}),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_the_providers_wait_is_a_floor(self, error):
        assert decided(error).changes.delay == 3600 * SECOND

    def test_hits_space_the_attempts(self):
        delays = [decided(RateLimitError(), hits=hits, r=1.0).changes.delay for hits in range(7)]

        assert delays == [SECOND * seconds for seconds in (30, 60, 120, 240, 480, 900, 900)]

    @relaxed
    @given(limit_errors, numbers, hit_counts, budgets)
    def test_it_counts_the_hit_and_gives_the_attempt_back(self, error, number, hits, budget):
        limits = replace(LIMITS, rate_limit=budget)
        decision = decided(error, number=number, hits=hits, limits=limits)
        changes = decision.changes

        assert changes.rate_limited
        assert changes.rate_limit_hits == min(hits + 1, 32_767)
        assert changes.last_error == "SomeError: as asked"
        if hits + 1 > budget.max_hits:
            assert decision.outcome is SettleOutcome.FAILED
            assert changes.status is JobStatus.FAILED
            assert changes.attempts is None
        else:
            assert decision.outcome is SettleOutcome.RATE_LIMIT_DEFERRED
            assert changes.status is JobStatus.PENDING
            assert changes.attempts == max(number - 1, 0)

    def test_ten_hits_are_deferred_and_the_eleventh_fails(self):
        outcomes = [decided(RateLimitError(), hits=hits).outcome for hits in range(11)]

        assert outcomes == [SettleOutcome.RATE_LIMIT_DEFERRED] * 10 + [SettleOutcome.FAILED]

    def test_it_trips_for_as_long_as_the_provider_says(self):
        assert decided(RateLimitError(retry_after=5)).trip == 5 * SECOND

    @pytest.mark.parametrize("wait", [None, 0])
    def test_it_trips_for_the_jobs_own_wait_when_the_provider_says_nothing(self, wait):
        decision = decided(RateLimitError(retry_after=wait))

        assert decision.trip == decision.changes.delay >= 15 * SECOND

    def test_it_trips_when_the_job_fails_of_it(self):
        decision = decided(RateLimitError(retry_after=5), hits=10)

        assert decision.outcome is SettleOutcome.FAILED
        assert decision.trip == 5 * SECOND


class TestDefer:
    @relaxed
    @given(numbers, durations)
    def test_a_job_that_did_not_start_costs_nothing(self, number, wait):
        decision = defer(CLAIM, Attempt(number, "host:1:0", None), wait)

        assert decision.outcome is SettleOutcome.RATE_LIMIT_DEFERRED
        assert decision.changes == Changes(
            JobStatus.PENDING, delay=wait, attempts=max(number - 1, 0)
        )
        assert decision.trip is None
