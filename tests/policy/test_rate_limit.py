import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue import PermanentError, RateLimitError
from django_jobqueue.policy.rate_limit import LONGEST_WAIT, retry_after_of


class Forgetful(RateLimitError):
    """A provider's own error that never called its base class."""

    def __init__(self):
        Exception.__init__(self, "slow down")


class Broken(RateLimitError):
    @property
    def retry_after(self):
        raise RuntimeError("broken")

    @retry_after.setter
    def retry_after(self, value):
        pass


@given(seconds=st.floats(0, LONGEST_WAIT.total_seconds()) | st.integers(0, 10**6))
def test_the_wait_that_a_provider_asks_for_is_read(seconds):
    assert retry_after_of(RateLimitError(retry_after=seconds)) == timedelta(seconds=seconds)


@given(
    seconds=st.floats()
    | st.integers()
    | st.none()
    | st.booleans()
    | st.text()
    | st.sampled_from([10**400, -(10**400), timedelta(1), [], object()])
)
def test_whatever_a_provider_says_gives_a_wait_or_none(seconds):
    wait = retry_after_of(RateLimitError(retry_after=seconds))

    assert wait is None or timedelta(0) <= wait <= LONGEST_WAIT


@pytest.mark.parametrize("seconds", [None, math.nan, math.inf, -math.inf, -1, -0.001, True, "3"])
def test_what_is_no_wait_is_none(seconds):
    assert retry_after_of(RateLimitError(retry_after=seconds)) is None


@pytest.mark.parametrize("seconds", [1e9, 1e300, pytest.param(10**400, id="huge")])
def test_an_absurd_wait_is_cut(seconds):
    assert retry_after_of(RateLimitError(retry_after=seconds)) == LONGEST_WAIT


@pytest.mark.parametrize("error", [ValueError(), PermanentError(), KeyboardInterrupt()])
def test_another_error_asks_for_no_wait(error):
    assert retry_after_of(error) is None


@pytest.mark.parametrize("error", [Forgetful, Broken])
def test_a_broken_error_asks_for_no_wait(error):
    assert retry_after_of(error()) is None


def test_the_message_of_a_rate_limit_is_optional():
    assert str(RateLimitError()) == "rate limited"
    assert str(RateLimitError("429", retry_after=3)) == "429"
