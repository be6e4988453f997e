from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation

from django_jobqueue.wording import estimated, exact, in_words, measured, mode_in_words


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
    ("seconds", "words"), [(0, "1 second"), (0.9, "1 second"), (240, "4 minutes")]
)
def test_an_estimate_is_a_second_at_least(seconds, words):
    assert estimated(seconds) == words


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


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ("less than a second", "1 second", "2 minutes", "1,500 days", "0.4 ms")),
        ("de", ("weniger als eine Sekunde", "1 Sekunde", "2 Minuten", "1.500 Tage", "0,4 ms")),
        ("es", ("menos de un segundo", "1 segundo", "2 minutos", "1\xa0500 días", "0,4 ms")),
    ],
)
def test_durations_are_said_in_the_reader_s_language(language, said):
    with translation.override(language):
        durations = [in_words(duration) for duration in (0.5, 1, 120, timedelta(days=1500))]
        assert (*durations, measured(0.0004)) == said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "2026-03-01 23:30:05 CET"),
        ("de", "01.03.2026 23:30:05 CET"),
        ("es", "01/03/2026 23:30:05 CET"),
    ],
)
def test_a_moment_is_told_to_the_second_in_the_zone_of_the_site(language, said, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    with translation.override(language):
        assert exact(datetime(2026, 3, 1, 22, 30, 5, tzinfo=UTC)) == said


def test_a_moment_without_a_zone_is_one_of_the_site(settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "Europe/Berlin"

    assert exact(datetime(2026, 3, 1, 22, 30, 5)) == "2026-03-01 22:30:05 CET"  # noqa: DTZ001


def test_a_mode_that_a_newer_release_has_is_told_as_it_is():
    with translation.override("de"):
        assert [mode_in_words(mode) for mode in ("all", "off", "later")] == ["alle", "aus", "later"]
