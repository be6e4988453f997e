from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.policy.ticks import (
    TICK_GRACE,
    last_ticks,
    next_tick,
    ticks_between,
    ticks_to_run,
)
from django_jobqueue.states import CatchUp

UTC_ZONE = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")
HOURLY = "0 * * * *"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def to_run(first, now, catch_up, limit=3, cron=HOURLY, zone=UTC_ZONE):
    return ticks_to_run(cron, zone, first, now, catch_up=catch_up, limit=limit)


@pytest.mark.parametrize("catch_up", CatchUp.values)
class TestOnTime:
    def test_a_tick_that_has_just_come_runs_whatever_the_policy(self, catch_up):
        assert to_run(NOON, NOON + timedelta(seconds=2), catch_up) == [NOON]

    def test_a_tick_counts_from_its_very_moment(self, catch_up):
        assert to_run(NOON, NOON, catch_up) == [NOON]

    def test_before_the_first_tick_nothing_runs(self, catch_up):
        assert to_run(NOON, NOON - timedelta(microseconds=1), catch_up) == []


class TestAfterAnAbsence:
    """A worker was away over five ticks, 08:00 to 12:00; it is 12:30."""

    first = NOON - 4 * HOUR
    now = NOON + HOUR / 2

    def test_skip_runs_none(self):
        assert to_run(self.first, self.now, CatchUp.SKIP) == []

    def test_skip_runs_the_last_one_when_it_is_young(self):
        young = NOON + TICK_GRACE - timedelta(seconds=1)

        assert to_run(self.first, young, CatchUp.SKIP) == [NOON]
        assert to_run(self.first, NOON + TICK_GRACE, CatchUp.SKIP) == []

    def test_once_runs_the_last_one(self):
        assert to_run(self.first, self.now, CatchUp.ONCE) == [NOON]

    @pytest.mark.parametrize("limit", [1, 3, 5, 100])
    def test_all_runs_the_last_ones_up_to_the_limit(self, limit):
        ticks = [NOON - 4 * HOUR, NOON - 3 * HOUR, NOON - 2 * HOUR, NOON - HOUR, NOON]

        assert to_run(self.first, self.now, CatchUp.ALL, limit) == ticks[-limit:]

    def test_all_follows_the_wall_clock_through_a_change_of_time(self):
        """Away from 28 March to 31 March in Berlin; the 29th has no 02:30."""
        first = datetime(2026, 3, 28, 1, 30, tzinfo=UTC)
        now = datetime(2026, 3, 31, 12, tzinfo=UTC)

        ticks = to_run(first, now, CatchUp.ALL, 10, "30 2 * * *", BERLIN)

        assert [tick.astimezone(BERLIN).strftime("%d %H:%M") for tick in ticks] == [
            "28 02:30",
            "29 03:00",
            "30 02:30",
            "31 02:30",
        ]


@given(
    days=st.integers(0, 400),
    minutes=st.integers(0, 24 * 60),
    count=st.integers(1, 20),
    cron=st.sampled_from([HOURLY, "30 2 * * *", "0 0 1 * *", "*/10 3 * * MON", "59 23 31 12 *"]),
    zone=st.sampled_from([UTC_ZONE, BERLIN]),
)
def test_looking_back_by_steps_finds_what_one_look_finds(days, minutes, count, cron, zone):
    first = NOON - timedelta(days=days, minutes=minutes)
    everything = list(ticks_between(cron, zone, first, NOON))

    assert last_ticks(cron, zone, first, NOON, count) == everything[-count:]


def test_the_next_tick_is_later_than_the_moment():
    assert next_tick(HOURLY, UTC_ZONE, NOON) == NOON + HOUR
    assert next_tick(HOURLY, UTC_ZONE, NOON - timedelta(microseconds=1)) == NOON


def test_a_busy_schedule_after_ten_years_is_caught_up_without_counting_them():
    ticks = last_ticks("* * * * *", BERLIN, NOON - timedelta(days=3650), NOON, 5)

    assert ticks == [NOON - timedelta(minutes=back) for back in (4, 3, 2, 1, 0)]
