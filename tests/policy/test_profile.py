import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.policy import (
    LEASE_GRACE,
    ExecutionProfile,
    ceiling_for,
    lease_for,
    max_attempts_for,
    renew_interval_for,
)
from django_jobqueue.policy.profile import MAX_ATTEMPTS, MAX_SECONDS, UNLIMITED_LEASE

SECOND = timedelta(seconds=1)
TIMEOUT = timedelta(minutes=10)

durations = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=3650))


@given(
    runtime=st.none() | st.floats(0, MAX_SECONDS) | st.timedeltas(timedelta(0), timedelta(3650)),
    attempts=st.none() | st.integers(1, MAX_ATTEMPTS),
)
def test_a_profile_in_range_has_no_problem(runtime, attempts):
    assert ExecutionProfile(runtime, attempts).problem() is None


@pytest.mark.parametrize(
    "runtime",
    [
        -1,
        -0.001,
        timedelta(seconds=-1),
        math.nan,
        math.inf,
        -math.inf,
        timedelta.max,
        MAX_SECONDS + 1,
        pytest.param(10**400, id="over any float"),
        pytest.param(-(10**400), id="under any float"),
        pytest.param(10**5000, id="over any text"),
        True,
        "30",
        [],
    ],
)
def test_a_runtime_that_cannot_be_counted_is_a_problem(runtime):
    problem = ExecutionProfile(max_runtime=runtime).problem()

    assert problem.startswith("max_runtime is ")
    assert "; expected " in problem


@pytest.mark.parametrize("attempts", [0, -1, 32_768, 2.0, math.nan, True, "3"])
def test_an_attempt_budget_that_cannot_be_counted_is_a_problem(attempts):
    problem = ExecutionProfile(max_attempts=attempts).problem()

    assert problem == (
        f"max_attempts is {attempts!r}; expected a whole number from 1 to {MAX_ATTEMPTS}"
    )


def test_a_profile_cannot_be_changed():
    with pytest.raises(AttributeError):
        ExecutionProfile().max_runtime = 3


@pytest.mark.parametrize(
    ("profile", "ceiling"),
    [
        (None, TIMEOUT),
        (ExecutionProfile(), TIMEOUT),
        (ExecutionProfile(max_attempts=5), TIMEOUT),
        (ExecutionProfile(max_runtime=30), timedelta(seconds=30)),
        (ExecutionProfile(max_runtime=0.5), timedelta(seconds=0.5)),
        (ExecutionProfile(max_runtime=timedelta(hours=1)), timedelta(hours=1)),
        (ExecutionProfile(max_runtime=0), None),
        (ExecutionProfile(max_runtime=timedelta(0)), None),
    ],
)
def test_the_ceiling_is_the_profile_s_else_the_site_s(profile, ceiling):
    assert ceiling_for(profile, job_timeout=TIMEOUT) == ceiling


def test_a_site_without_timeout_has_no_ceiling():
    assert ceiling_for(None, job_timeout=timedelta(0)) is None
    assert ceiling_for(ExecutionProfile(30), job_timeout=timedelta(0)) == timedelta(seconds=30)


@given(ceiling=durations)
def test_a_lease_outlives_the_ceiling_by_its_grace(ceiling):
    assert lease_for(ceiling, lease_cap=None) == ceiling + LEASE_GRACE


@given(ceiling=st.none() | durations, cap=durations)
def test_a_lease_is_never_over_the_cap(ceiling, cap):
    lease = lease_for(ceiling, lease_cap=cap)

    assert lease == min(lease_for(ceiling, lease_cap=None), cap)


def test_no_ceiling_counts_as_an_hour():
    assert lease_for(None, lease_cap=None) == UNLIMITED_LEASE == timedelta(hours=1)


@given(lease=durations)
def test_a_lease_can_miss_a_renewal_before_it_ends(lease):
    interval = renew_interval_for(lease)

    assert timedelta(0) < interval <= 60 * SECOND
    assert 2 * interval < lease


@pytest.mark.parametrize(("lease", "interval"), [(90, 30), (180, 60), (3600, 60), (3, 1)])
def test_a_claim_is_renewed_at_a_third_of_its_lease(lease, interval):
    assert renew_interval_for(lease * SECOND) == interval * SECOND


@pytest.mark.parametrize(
    ("profile", "attempts"),
    [
        (None, 3),
        (ExecutionProfile(), 3),
        (ExecutionProfile(max_runtime=5), 3),
        (ExecutionProfile(max_attempts=1), 1),
        (ExecutionProfile(max_attempts=9), 9),
    ],
)
def test_the_attempt_budget_is_the_profile_s_else_the_site_s(profile, attempts):
    assert max_attempts_for(profile, default=3) == attempts
