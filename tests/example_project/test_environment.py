import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from example_project import environment

FILE = Path("/folder/file.sqlite3")
BASE = Path("/base")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*environment.JOB_SETTINGS, "DATABASE_URL", "DEBUG"):
        monkeypatch.delenv(name, raising=False)


def test_only_variables_that_are_set_reach_the_package() -> None:
    assert environment.jobqueue() == {}


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBS_POLL_MS", " ")

    assert environment.jobqueue() == {}


@pytest.mark.parametrize(
    ("name", "value", "key", "meaning"),
    [
        ("JOBS_WORKER_MODE", "system", "WORKER_MODE", "system"),
        ("JOBS_WORKER_CONCURRENCY", "0", "WORKER_CONCURRENCY", 0),
        ("JOBS_POLL_MS", "250", "POLL_INTERVAL", 0.25),
        ("JOBS_JOB_TIMEOUT_MS", "0", "JOB_TIMEOUT", 0),
        ("JOBS_SYSTEM_MODE_EXTRA_TYPES", "a,b", "SYSTEM_MODE_EXTRA_TYPES", "a,b"),
        ("JOBS_MAX_ATTEMPTS", "5", "MAX_ATTEMPTS", 5),
        ("JOBS_RETRY_BASE_MS", "1500", "RETRY_BASE", 1.5),
        ("JOBS_RETRY_MAX_MS", "60000", "RETRY_MAX", 60),
        ("JOBS_RATELIMIT_MAX_HITS", "0", "RATE_LIMIT_MAX_HITS", 0),
        ("JOBS_RATELIMIT_BASE_MS", "10", "RATE_LIMIT_BASE", 0.01),
        ("JOBS_RATELIMIT_MAX_MS", "900000", "RATE_LIMIT_MAX", 900),
        ("JOBS_REAPER_ENABLED", "Off", "REAPER_ENABLED", False),
    ],
)
def test_a_variable_becomes_a_setting_that_the_package_accepts(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, key: str, meaning: object
) -> None:
    from django_jobqueue.conf import SETTINGS

    monkeypatch.setenv(name, value)

    assert environment.jobqueue() == {key: meaning}
    SETTINGS[key].parse(meaning)


def test_every_setting_has_its_variable_tested() -> None:
    (tested,) = (
        mark.args[1]
        for mark in test_a_variable_becomes_a_setting_that_the_package_accepts.pytestmark
    )

    assert {name for name, *_ in tested} == set(environment.JOB_SETTINGS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOBS_WORKER_CONCURRENCY", "two"),
        ("JOBS_POLL_MS", "0"),
        ("JOBS_POLL_MS", "5s"),
        ("JOBS_JOB_TIMEOUT_MS", "-1"),
        ("JOBS_MAX_ATTEMPTS", "0"),
        ("JOBS_RETRY_BASE_MS", "1.5"),
        ("JOBS_RATELIMIT_MAX_HITS", "-1"),
        ("JOBS_REAPER_ENABLED", "flase"),
    ],
)
def test_a_wrong_value_is_one_line_with_name_value_and_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ImproperlyConfigured) as raised:
        environment.jobqueue()

    message = str(raised.value)
    assert f'{name} is "{value}"; expected ' in message
    assert "Correct it" in message
    assert "\n" not in message


def test_without_a_url_the_database_is_a_file_that_a_site_and_a_worker_can_share() -> None:
    default = environment.databases(FILE, BASE)["default"]

    assert default["NAME"] == str(FILE)
    assert default["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert default["OPTIONS"]["timeout"] == 20
    assert "journal_mode=WAL" in default["OPTIONS"]["init_command"]


@pytest.mark.parametrize(
    ("url", "name"),
    [("sqlite:////tmp/x.sqlite3", "/tmp/x.sqlite3"), ("sqlite:///x.sqlite3", "/base/x.sqlite3")],
)
def test_an_sqlite_url_names_a_file_and_keeps_the_options(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{url}?timeout=3")

    default = environment.databases(FILE, BASE)["default"]

    assert default["NAME"] == name
    assert default["OPTIONS"]["timeout"] == 3
    assert default["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_postgresql_url_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://ann:secret@db:5433/files")

    default = environment.databases(FILE, BASE)["default"]

    assert default["ENGINE"] == "django.db.backends.postgresql"
    assert (default["HOST"], default["PORT"], default["NAME"]) == ("db", 5433, "files")


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "http://host/name",
        "postgres://ann:secret@host:port/files",
        "postgres://ann:secret@host",
        "sqlite://:memory:",
        "sqlite://",
    ],
)
def test_a_wrong_database_url_is_one_line_without_the_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)

    with pytest.raises(ImproperlyConfigured) as raised:
        environment.databases(FILE, BASE)

    message = str(raised.value)
    assert message.startswith('DATABASE_URL is "')
    assert "; expected " in message
    assert "\n" not in message
    assert "secret" not in message


def test_postgresql_without_its_driver_is_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://ann:secret@host/files")
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ImproperlyConfigured) as raised:
        environment.databases(FILE, BASE)

    message = str(raised.value)
    assert "psycopg is not installed; run pip install" in message
    assert "secret" not in message
