from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.policy import equal_jitter

TICK = timedelta(microseconds=1)
NONE = timedelta(0)

durations = st.timedeltas(min_value=NONE, max_value=timedelta(days=3650))
attempts = st.integers(min_value=1) | st.sampled_from([1, 2, 64, 65, 1_024, 32_767, 10**9, 10**400])
shares = st.floats(min_value=0, max_value=1)


@given(attempt=attempts, base=durations, cap=durations, r=shares)
def test_the_delay_is_between_half_a_step_and_a_step(attempt, base, cap, r):
    step = min(cap.total_seconds(), base.total_seconds() * 2 ** min(attempt - 1, 80))

    delay = equal_jitter(attempt, base=base, cap=cap, r=r)

    assert timedelta(seconds=step / 2) - TICK <= delay <= timedelta(seconds=step) + TICK


@given(attempt=attempts, base=durations, cap=durations, r=shares)
def test_the_delay_is_never_over_the_cap(attempt, base, cap, r):
    assert NONE <= equal_jitter(attempt, base=base, cap=cap, r=r) <= cap


@given(attempt=attempts, base=durations, cap=durations, r=shares, floor=durations)
def test_a_provider_s_wait_is_a_floor_even_over_the_cap(attempt, base, cap, r, floor):
    without = equal_jitter(attempt, base=base, cap=cap, r=r)

    assert equal_jitter(attempt, base=base, cap=cap, r=r, retry_after=floor) == max(without, floor)


@given(attempt=st.integers(1, 200), base=durations, cap=durations, r=shares)
def test_a_later_attempt_never_waits_less(attempt, base, cap, r):
    earlier = equal_jitter(attempt, base=base, cap=cap, r=r)

    assert equal_jitter(attempt + 1, base=base, cap=cap, r=r) >= earlier


@given(attempt=attempts, base=durations, cap=durations, r=shares, more=shares)
def test_a_larger_share_never_waits_less(attempt, base, cap, r, more):
    less, more = sorted([r, more])

    assert equal_jitter(attempt, base=base, cap=cap, r=less) <= equal_jitter(
        attempt, base=base, cap=cap, r=more
    )


@pytest.mark.parametrize(
    ("attempt", "r", "seconds"),
    [
        (1, 0, 1),
        (1, 1, 2),
        (1, 0.5, 1.5),
        (2, 0, 2),
        (3, 0.5, 6),
        (5, 1, 32),
        (6, 1, 60),
        (99, 0, 30),
    ],
)
def test_the_steps_double_until_the_cap(attempt, r, seconds):
    delay = equal_jitter(attempt, base=timedelta(seconds=2), cap=timedelta(seconds=60), r=r)

    assert delay == timedelta(seconds=seconds)


@pytest.mark.parametrize("attempt", [0, -1, -(10**30)])
def test_an_attempt_before_the_first_waits_like_the_first(attempt):
    options = {"base": timedelta(seconds=2), "cap": timedelta(seconds=60), "r": 0.3}

    assert equal_jitter(attempt, **options) == equal_jitter(1, **options)
