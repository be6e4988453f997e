"""Lengths of time in few characters."""

from datetime import timedelta

import pytest

from django_jobqueue.admin.durations import short_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 ms"), (0.25, "250 ms"), (0.9999, "999 ms"), (1, "1 s"), (59.9, "59 s")),
        *((60, "1 min"), (3_599, "59 min"), (3_600, "1 h"), (86_399, "23 h"), (86_400, "1 d")),
        *((86_400 * 400, "400 d"), (-5, "0 ms")),
    ],
)
def test_a_duration_is_told_in_its_largest_whole_unit(seconds, text):
    assert short_duration(timedelta(seconds=seconds)) == text
