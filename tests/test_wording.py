from datetime import timedelta

import pytest

from django_jobqueue.wording import in_words, measured


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a second"),
        (0.9, "less than a second"),
        (1.2, "1 second"),
        (89, "89 seconds"),
        (90, "2 minutes"),
        (240, "4 minutes"),
        (89 * 60, "89 minutes"),
        (90 * 60, "2 hours"),
        (47 * 3600, "47 hours"),
        (timedelta(days=3), "3 days"),
    ],
)
def test_a_duration_is_said_in_one_unit(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "none"),
        (0.0004, "0.4 ms"),
        (0.3, "300 ms"),
        (3.0, "3 s"),
        (3.44, "3.4 s"),
        (600, "10 min"),
        (14400, "4 h"),
    ],
)
def test_a_measured_duration_shows_no_digit_that_nobody_reads(seconds, words):
    assert measured(seconds) == words
