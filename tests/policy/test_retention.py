import math
from datetime import timedelta

import pytest

from django_jobqueue.policy import Keeping, keepings, retention_problem
from django_jobqueue.policy.retention import LONGEST_RETENTION

DAY = timedelta(days=1)


@pytest.mark.parametrize("value", [None, 0, 3600, 0.5, timedelta(0), DAY, LONGEST_RETENTION])
def test_a_retention_in_range_has_no_problem(value):
    assert retention_problem(value) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1, "it is -1; expected 0 or more, and finite"),
        (-DAY, "it is datetime.timedelta(days=-1); expected 0 or more, and finite"),
        (math.nan, "it is nan; expected 0 or more, and finite"),
        (math.inf, "it is inf; expected 0 or more, and finite"),
        (
            LONGEST_RETENTION.total_seconds() + 1,
            "it is 3153600001.0; expected 0 or more, and finite",
        ),
        (True, "it is True; expected a timedelta or seconds"),
        ("30d", "it is '30d'; expected a timedelta or seconds"),
        ([DAY], "it is [datetime.timedelta(days=1)]; expected a timedelta or seconds"),
    ],
)
def test_an_unusable_retention_is_described(value, problem):
    assert retention_problem(value) == problem


def test_types_are_grouped_by_how_long_they_are_kept():
    own = {"d": 86400, "c": None, "b": 7 * DAY, "a": DAY, "e": timedelta(0)}

    assert keepings(own, history_retention=30 * DAY) == [
        Keeping(30 * DAY, except_types=("a", "b", "d", "e")),
        Keeping(timedelta(0), ("e",)),
        Keeping(DAY, ("a", "d")),
        Keeping(7 * DAY, ("b",)),
    ]


def test_without_a_retention_of_its_own_a_type_goes_with_all_others():
    assert keepings({"a": None}, history_retention=DAY) == [Keeping(DAY)]
    assert keepings({}, history_retention=DAY) == [Keeping(DAY)]
