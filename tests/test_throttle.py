import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobqueue.throttle import Throttle

SECOND = timedelta(seconds=1)
OPEN = timedelta(0)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 1_000.0
        self.asked = 0

    def __call__(self):
        self.asked += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def throttle(clock):
    return Throttle(clock)


def test_a_gate_is_open_until_it_is_tripped(throttle):
    assert throttle.wait_left("acme") == OPEN
    assert throttle.closed() == frozenset()
    assert throttle.next_opening() is None


def test_a_trip_closes_the_gate_of_its_provider_only(throttle):
    throttle.trip("acme", 5 * SECOND)

    assert throttle.wait_left("acme") == 5 * SECOND
    assert throttle.wait_left("other") == OPEN
    assert throttle.closed() == {"acme"}
    assert throttle.next_opening() == 5.0


def test_a_gate_opens_by_itself(throttle, clock):
    throttle.trip("acme", 5 * SECOND)

    clock.now += 4.5
    assert throttle.wait_left("acme") == 0.5 * SECOND
    clock.now += 0.5

    assert throttle.wait_left("acme") == OPEN
    assert throttle.closed() == frozenset()
    assert throttle.next_opening() is None


@pytest.mark.parametrize("wait", [1, 0, -3])
def test_a_trip_never_shortens(throttle, wait):
    throttle.trip("acme", 5 * SECOND)
    throttle.trip("acme", wait * SECOND)

    assert throttle.wait_left("acme") == 5 * SECOND


def test_a_trip_extends(throttle, clock):
    throttle.trip("acme", 5 * SECOND)
    clock.now += 3
    throttle.trip("acme", 5 * SECOND)

    assert throttle.wait_left("acme") == 5 * SECOND


@pytest.mark.parametrize("wait", [0, -3])
def test_a_trip_without_a_wait_closes_nothing(throttle, wait):
    throttle.trip("acme", wait * SECOND)

    assert throttle.closed() == frozenset()


def test_the_first_of_several_gates_says_when_one_opens(throttle, clock):
    throttle.trip("slow", 60 * SECOND)
    throttle.trip("quick", 5 * SECOND)
    clock.now += 2

    assert throttle.closed() == {"slow", "quick"}
    assert throttle.next_opening() == 3.0


class TestClear:
    def test_a_success_that_started_after_the_trip_opens_the_gate(self, throttle):
        throttle.trip("acme", 60 * SECOND)
        ticket = throttle.ticket()

        assert throttle.clear("acme", ticket)

        assert throttle.wait_left("acme") == OPEN
        assert throttle.closed() == frozenset()

    def test_a_success_that_started_before_the_trip_proves_nothing(self, throttle):
        ticket = throttle.ticket()
        throttle.trip("acme", 60 * SECOND)

        assert not throttle.clear("acme", ticket)

        assert throttle.wait_left("acme") == 60 * SECOND

    def test_the_last_trip_counts(self, throttle):
        throttle.trip("acme", 60 * SECOND)
        ticket = throttle.ticket()
        throttle.trip("acme", SECOND)

        assert not throttle.clear("acme", ticket)

    def test_a_trip_of_another_provider_does_not_count(self, throttle):
        throttle.trip("acme", 60 * SECOND)
        ticket = throttle.ticket()
        throttle.trip("other", 60 * SECOND)

        assert throttle.clear("acme", ticket)
        assert throttle.closed() == {"other"}

    def test_an_old_success_does_not_open_a_gate_that_was_closed_again(self, throttle, clock):
        ticket = throttle.ticket()
        throttle.trip("acme", SECOND)
        clock.now += 2
        assert throttle.closed() == frozenset()
        throttle.trip("acme", SECOND)

        assert not throttle.clear("acme", ticket)
        assert throttle.closed() == {"acme"}

    def test_it_says_whether_it_opened_anything(self, throttle, clock):
        assert not throttle.clear("acme", throttle.ticket())

        throttle.trip("acme", SECOND)
        clock.now += 2

        assert not throttle.clear("acme", throttle.ticket())


def test_without_a_key_nothing_is_looked_up(throttle, clock):
    throttle.trip(None, 60 * SECOND)
    throttle.trip("acme", 60 * SECOND)
    clock.asked = 0

    assert throttle.wait_left(None) == OPEN
    assert not throttle.clear(None, throttle.ticket())
    throttle.trip(None, 60 * SECOND)

    assert clock.asked == 0
    assert throttle.closed() == {"acme"}


def test_open_gates_cost_no_look_at_the_clock(throttle, clock):
    throttle.wait_left("acme")
    throttle.closed()
    throttle.next_opening()
    throttle.clear("acme", throttle.ticket())

    assert clock.asked == 0


def test_gates_that_opened_are_forgotten(throttle, clock):
    for number in range(100):
        throttle.trip(f"tenant-{number}", SECOND)
    clock.now += 2
    throttle.closed()
    clock.asked = 0

    throttle.closed()

    assert clock.asked == 0


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 100), st.floats(0, 100))))
def test_a_gate_stays_closed_for_the_longest_wait_asked(trips):
    clock = Clock()
    throttle = Throttle(clock)
    latest = {}
    for provider, later, wait in trips:
        clock.now += later
        throttle.trip(provider, timedelta(seconds=wait))
        latest[provider] = max(latest.get(provider, 0), clock.now + wait)

    left = {key: opens_at - clock.now for key, opens_at in latest.items()}
    for provider, seconds in left.items():
        assert throttle.wait_left(provider).total_seconds() == pytest.approx(
            max(seconds, 0), abs=1e-5
        )


def test_its_own_clock_is_monotonic_time():
    throttle = Throttle()
    before = time.monotonic()
    throttle.trip("acme", 60 * SECOND)

    assert 60.0 - (time.monotonic() - before) - 1 < throttle.next_opening() <= 60.0


def test_threads_may_trip_ask_and_clear_at_once():
    throttle = Throttle()
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        for turn in range(500):
            throttle.trip(f"tenant-{(number + turn) % 5}", timedelta(microseconds=turn))
            throttle.closed()
            throttle.next_opening()
            throttle.wait_left(f"tenant-{turn % 5}")
            throttle.clear(f"tenant-{turn % 5}", throttle.ticket())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert throttle.ticket() == 8 * 500
