from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.cron import (
    MOST_CATCH_UP,
    cron_problem,
    limit_problem,
    problems_of,
    ticks_after,
    zone_problem,
)

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
DAYS = [(2026, 3, 7), (2026, 3, 28), (2026, 10, 24), (2026, 10, 31)]
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")]


def local(expression, start, count):
    """The next ticks as wall times with their offset, in hours."""
    zone = start.tzinfo
    ticks = islice(ticks_after(expression, zone, start), count)
    return [tick.astimezone(zone).strftime("%d %H:%M %z")[:-2] for tick in ticks]


class TestSpring:
    """Berlin skips 02:00 to 03:00 on 29 March 2026, New York on 8 March."""

    @pytest.mark.parametrize(
        ("start", "expected"),
        [
            (
                datetime(2026, 3, 28, tzinfo=BERLIN),
                ["28 02:30 +01", "29 03:00 +02", "30 02:30 +02"],
            ),
            (
                datetime(2026, 3, 7, tzinfo=NEW_YORK),
                ["07 02:30 -05", "08 03:00 -04", "09 02:30 -04"],
            ),
        ],
        ids=["Berlin", "New York"],
    )
    def test_a_time_in_the_gap_runs_once_right_after_it(self, start, expected):
        assert local("30 2 * * *", start, 3) == expected

    @pytest.mark.parametrize(
        ("start", "expected"),
        [
            (datetime(2026, 3, 29, 1, 15, tzinfo=BERLIN), ["29 01:30 +01", "29 03:00 +02"]),
            (datetime(2026, 3, 8, 1, 15, tzinfo=NEW_YORK), ["08 01:30 -05", "08 03:00 -04"]),
        ],
        ids=["Berlin", "New York"],
    )
    def test_what_runs_every_half_hour_goes_on_by_real_time(self, start, expected):
        assert local("*/30 * * * *", start, 2) == expected

    def test_two_times_in_the_gap_run_once(self):
        assert local("0,30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=BERLIN), 2) == [
            "29 03:00 +02",
            "30 02:00 +02",
        ]


class TestAutumn:
    """Berlin repeats 02:00 to 03:00 on 25 October 2026, New York 01:00 to 02:00 on 1 November."""

    @pytest.mark.parametrize(
        ("expression", "start", "expected"),
        [
            (
                "30 2 * * *",
                datetime(2026, 10, 24, tzinfo=BERLIN),
                ["24 02:30 +02", "25 02:30 +02", "26 02:30 +01"],
            ),
            (
                "30 1 * * *",
                datetime(2026, 10, 31, tzinfo=NEW_YORK),
                ["31 01:30 -04", "01 01:30 -04", "02 01:30 -05"],
            ),
        ],
        ids=["Berlin", "New York"],
    )
    def test_a_time_in_the_repeated_hour_runs_the_first_time_only(
        self, expression, start, expected
    ):
        assert local(expression, start, 3) == expected

    @pytest.mark.parametrize(
        "start",
        [
            datetime(2026, 10, 25, 2, 40, tzinfo=BERLIN),
            datetime(2026, 10, 25, 2, 15, fold=1, tzinfo=BERLIN),
            datetime(2026, 10, 25, 2, 45, fold=1, tzinfo=BERLIN),
        ],
        ids=str,
    )
    def test_it_does_not_run_again_for_a_worker_that_starts_in_that_hour(self, start):
        assert local("30 2 * * *", start, 1) == ["26 02:30 +01"]

    @pytest.mark.parametrize(
        ("start", "expected"),
        [
            (
                datetime(2026, 10, 25, 1, 45, tzinfo=BERLIN),
                ["25 02:00 +02", "25 02:30 +02", "25 02:00 +01", "25 02:30 +01", "25 03:00 +01"],
            ),
            (
                datetime(2026, 11, 1, 0, 45, tzinfo=NEW_YORK),
                ["01 01:00 -04", "01 01:30 -04", "01 01:00 -05", "01 01:30 -05", "01 02:00 -05"],
            ),
        ],
        ids=["Berlin", "New York"],
    )
    def test_what_runs_every_half_hour_runs_in_both(self, start, expected):
        assert local("*/30 * * * *", start, 5) == expected


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize(
    "expression",
    [
        "30 2 * * *",
        "*/20 * * * *",
        "15 1,2,3 * * *",
        "5 */2 * * *",
        "0 0 * * SUN",
        "59 1 25-31 * *",
    ],
)
@given(minutes=st.integers(0, 3 * 24 * 60), day=st.sampled_from(DAYS))
def test_the_ticks_do_not_depend_on_where_one_begins_to_look(zone, expression, minutes, day):
    origin = datetime(*day, tzinfo=UTC)
    moment = origin + timedelta(minutes=minutes)
    end = origin + timedelta(days=4)
    all_ticks = list(takewhile(lambda tick: tick <= end, ticks_after(expression, zone, origin)))

    seen = list(takewhile(lambda tick: tick <= end, ticks_after(expression, zone, moment)))

    assert seen == [tick for tick in all_ticks if tick > moment]
    assert seen == sorted(set(seen))


class TestProblems:
    @pytest.mark.parametrize(
        "expression",
        ["0 3 * * *", "*/5 0-6 1,15 JAN-MAR MON", "0 0 L * *", "0 0 29 2 *", "0 0 * * FRI#2"],
    )
    def test_a_usable_expression_has_none(self, expression):
        assert cron_problem(expression) is None

    @pytest.mark.parametrize(
        ("expression", "words"),
        [
            (None, "expected a string"),
            (3, "expected a string"),
            ("", "expected minute, hour"),
            ("* * * *", "expected minute, hour"),
            ("0 * * * * *", "expected minute, hour"),
            ("@daily", "expected minute, hour"),
            ("61 * * * *", "Bad minute"),
            ("0 24 * * *", "Bad hour"),
            ("0 0 0 * *", "Bad day-of-month"),
            ("0 0 * 13 *", "Bad month"),
            ("0 0 * * 8", "Bad day-of-week"),
            ("*/0 * * * *", "Bad minute"),
            ("0 0 30 2 *", "Bad day-of-month"),
        ],
    )
    def test_an_unusable_expression_is_shown_with_what_was_expected(self, expression, words):
        problem = cron_problem(expression)

        assert repr(expression) in problem
        assert words in problem

    @given(st.lists(st.text("0123456789*/-,#LWMONJA ", max_size=6), min_size=5, max_size=5))
    def test_no_expression_makes_the_check_raise(self, fields):
        cron_problem(" ".join(fields))

    @pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/New_York"])
    def test_a_known_zone_has_none(self, name):
        assert zone_problem(name) is None

    @pytest.mark.parametrize(
        "name",
        [
            None,
            7,
            "",
            "Europe",
            "Mars/Olympus",
            "../etc/passwd",
            "/etc/localtime",
            "a\0b",
            "\ud800",
        ],
    )
    def test_an_unknown_zone_is_shown(self, name):
        assert repr(name) in zone_problem(name)

    @pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3", None, MOST_CATCH_UP + 1])
    def test_an_unusable_limit_is_shown(self, limit):
        assert repr(limit) in limit_problem(limit)

    def test_everything_wrong_is_told_by_field(self):
        assert problems_of("0 3 * * *", "UTC", 10) == {}
        assert list(problems_of("x", "y", 0)) == ["cron", "timezone", "limit"]
