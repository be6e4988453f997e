import math
from datetime import timedelta
from pathlib import PurePath

import pytest
from django.test import override_settings

from django_jobqueue.conf import DEFAULTS, SETTINGS, problems, settings
from django_jobqueue.exceptions import InvalidSettings, shown

TEN_YEARS = 10 * 365 * 24 * 3600

DURATIONS = {
    "POLL_INTERVAL": 0.001,
    "JOB_TIMEOUT": 0,
    "LEASE_CAP": 0.001,
    "RETRY_BASE": 0,
    "RETRY_MAX": 0,
    "RATE_LIMIT_BASE": 0,
    "RATE_LIMIT_MAX": 0,
    "SHUTDOWN_GRACE": 0,
    "REAPER_INTERVAL": 0.001,
    "STUCK_THRESHOLD": 0.001,
    "HISTORY_RETENTION": 0,
    "HEALTH_MAX_AGE": 1,
    "HEALTH_MAX_OVERDUE": 0,
}
NUMBERS = {
    "WORKER_CONCURRENCY": None,
    "MAX_ATTEMPTS": 1,
    "RATE_LIMIT_MAX_HITS": 0,
    "MAX_PAYLOAD_BYTES": 2,
    "MAX_RESULT_BYTES": 2,
    "MAX_ABANDONED": 0,
    "HEALTH_MAX_STUCK": 0,
}
FLAGS = ["REAPER_ENABLED", "PURGE_ENABLED", "NOTIFY", "NODES_ENABLED"]
OTHERS = [
    "WORKER_MODE",
    "SYSTEM_MODE_EXTRA_TYPES",
    "TEMP_PREFIX",
    "MASKED_KEYS",
    "HEALTH_FILE",
    "HEALTH_MAX_FAILING",
]


def callable_mode():
    return "all"


GOOD = [
    *[
        case
        for key, least in DURATIONS.items()
        for case in (
            (key, 7, 7.0),
            (key, least, float(least)),
            (key, 7.5, 7.5),
            (key, timedelta(minutes=1), 60.0),
            (key, TEN_YEARS, float(TEN_YEARS)),
        )
    ],
    *[
        case
        for key, least in NUMBERS.items()
        for case in ((key, 7, 7), (key, least or 0, least or 0))
    ],
    ("WORKER_CONCURRENCY", -3, -3),
    *[(key, flag, flag) for key in FLAGS for flag in (True, False)],
    ("LEASE_CAP", None, None),
    ("WORKER_MODE", "System ", "System "),
    ("WORKER_MODE", None, None),
    ("WORKER_MODE", callable_mode, callable_mode),
    ("SYSTEM_MODE_EXTRA_TYPES", "a.b, c.d,,", ("a.b", "c.d")),
    ("SYSTEM_MODE_EXTRA_TYPES", ["a.b", " c.d ", ""], ("a.b", "c.d")),
    ("SYSTEM_MODE_EXTRA_TYPES", ("a.b",), ("a.b",)),
    ("SYSTEM_MODE_EXTRA_TYPES", {"a.b"}, ("a.b",)),
    ("SYSTEM_MODE_EXTRA_TYPES", "", ()),
    ("TEMP_PREFIX", None, None),
    ("TEMP_PREFIX", "site-", "site-"),
    ("HEALTH_FILE", None, None),
    ("HEALTH_FILE", "/run/site/worker", "/run/site/worker"),
    ("HEALTH_FILE", PurePath("run") / "worker", "run/worker"),
    ("HEALTH_MAX_FAILING", 0, 0.0),
    ("HEALTH_MAX_FAILING", 0.25, 0.25),
    ("HEALTH_MAX_FAILING", 1, 1.0),
]
BAD = [
    *[
        (key, value)
        for key in DURATIONS
        for value in (-1, math.nan, math.inf, TEN_YEARS + 1, timedelta(-1), "5", True, [])
    ],
    *[(key, None) for key in DURATIONS if key != "LEASE_CAP"],
    *[(key, 0) for key, least in DURATIONS.items() if least],
    *[(key, value) for key in NUMBERS for value in (1.0, "5", None, True, 2**31)],
    *[(key, least - 1) for key, least in NUMBERS.items() if least is not None],
    ("MAX_ATTEMPTS", 32_768),
    ("RATE_LIMIT_MAX_HITS", 32_768),
    *[(key, value) for key in FLAGS for value in ("False", 0, 1, None)],
    ("WORKER_MODE", 3),
    ("WORKER_MODE", ["all"]),
    ("SYSTEM_MODE_EXTRA_TYPES", None),
    ("SYSTEM_MODE_EXTRA_TYPES", 7),
    ("SYSTEM_MODE_EXTRA_TYPES", ["a", 7]),
    ("TEMP_PREFIX", ""),
    ("TEMP_PREFIX", "a/b"),
    ("TEMP_PREFIX", "a\\b"),
    ("TEMP_PREFIX", "a\0b"),
    ("TEMP_PREFIX", 7),
    *[("HEALTH_FILE", value) for value in ("", "a\0b", 7, True, b"worker", [])],
    *[("HEALTH_MAX_FAILING", value) for value in (-0.1, 1.1, 50, math.nan, True, "0.5", None)],
]
OVER_ANY_FLOAT = [("JOB_TIMEOUT", 10**400), ("LEASE_CAP", -(10**400))]


def ident(value):
    return str(value)[:20]


def test_every_setting_is_tested_here():
    assert {*DURATIONS, *NUMBERS, *FLAGS, *OTHERS} == set(SETTINGS)


def test_without_the_dict_the_defaults_are_read():
    with override_settings(JOBQUEUE=None):
        assert (settings.WORKER_MODE, settings.WORKER_CONCURRENCY) == ("all", 2)
        assert settings.HISTORY_RETENTION == 30 * 24 * 3600.0
        assert list(problems()) == []


@pytest.mark.parametrize("key", SETTINGS)
def test_every_default_is_a_good_value(key):
    with override_settings(JOBQUEUE={key: DEFAULTS[key]}):
        written = getattr(settings, key)
        assert list(problems()) == []

    with override_settings(JOBQUEUE={}):
        assert getattr(settings, key) == written


@pytest.mark.parametrize(("key", "value", "parsed"), GOOD, ids=ident)
def test_a_good_value_is_parsed(key, value, parsed):
    with override_settings(JOBQUEUE={key: value}):
        found = getattr(settings, key)
        assert list(problems()) == []

    assert found == parsed
    assert type(found) is type(parsed)


@pytest.mark.parametrize(("key", "value"), [*BAD, *OVER_ANY_FLOAT], ids=ident)
def test_a_bad_value_is_refused_by_name_with_what_is_expected(key, value):
    with override_settings(JOBQUEUE={key: value}):
        with pytest.raises(InvalidSettings) as error:
            getattr(settings, key)
        (problem,) = problems()

    assert str(error.value).startswith(f"JOBQUEUE[{key!r}] is {shown(value)}; expected ")
    assert problem.message == str(error.value)
    assert problem.key == key
    assert not problem.unknown_key
    assert problem.hint.startswith("Correct it, or leave it out for the default, ")


@pytest.mark.parametrize("key", ["WORKER_MODEL", "worker_mode", 7, None])
def test_an_unknown_key_is_a_problem_with_the_keys_there_are(key):
    with override_settings(JOBQUEUE={key: 1, "MAX_ATTEMPTS": 9}):
        (problem,) = problems()
        assert settings.MAX_ATTEMPTS == 9

    assert problem.unknown_key
    assert problem.message == f"JOBQUEUE[{key!r}] is not a setting of django-jobqueue."
    assert "WORKER_CONCURRENCY, WORKER_MODE" in problem.hint


@pytest.mark.parametrize("value", [["WORKER_MODE"], "all", 7])
def test_anything_but_a_dict_is_a_problem(value):
    with override_settings(JOBQUEUE=value):
        (problem,) = problems()
        with pytest.raises(InvalidSettings, match="expected a dict"):
            settings.MAX_ATTEMPTS  # noqa: B018 (reading is the act)

    assert problem.message == f"JOBQUEUE is {type(value).__name__} {value!r}; expected a dict."


def test_all_mistakes_are_told_at_once():
    with override_settings(JOBQUEUE={"MAX_ATTEMPTS": 0, "NOTIFY": "yes", "TYPO": 1}):
        assert [problem.key for problem in problems()] == ["MAX_ATTEMPTS", "NOTIFY", "TYPO"]


def test_a_changed_setting_is_read_again():
    with override_settings(JOBQUEUE={"MAX_ATTEMPTS": 4}):
        assert settings.MAX_ATTEMPTS == 4
        with override_settings(JOBQUEUE={"MAX_ATTEMPTS": 5}):
            assert settings.MAX_ATTEMPTS == 5
        assert settings.MAX_ATTEMPTS == 4


def test_another_setting_does_not_make_it_read_again():
    with override_settings(JOBQUEUE={"MAX_ATTEMPTS": 4}):
        read = settings.MAX_ATTEMPTS
        with override_settings(DEBUG=True):
            assert settings.__dict__ == {"MAX_ATTEMPTS": read}


def test_a_setting_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no setting 'MAX_TRIES'"):
        settings.MAX_TRIES  # noqa: B018 (reading is the act)


def test_a_naive_question_about_attributes_is_answered():
    assert not hasattr(settings, "__wrapped__")
