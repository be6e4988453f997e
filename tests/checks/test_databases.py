"""The database that holds the jobs, without a connection to it."""

import sqlite3

import pytest
from django.db import connections

from django_jobqueue.checks.databases import numbers
from tests import databases
from tests.aliases import alias
from tests.checks.looking import checked, ids_in, jobs_on
from tests.processes import Site

POSTGRESQL_URL = "postgresql://ann:secret@127.0.0.1:1/site"

ROUTER = """
class Router:
    def db_for_write(self, model, **hints):
        return "jobs" if model._meta.label == "django_jobqueue.Job" else None

DATABASE_ROUTERS = [Router()]
SILENCED_SYSTEM_CHECKS = ["django_jobqueue.W013"]
"""


def said(engine, *, url=None, **changes):
    """Return what is said about jobs on an alias with these settings; nothing listens there."""
    with alias("jobs"):
        usable = connections.settings["jobs"]
        connections.settings["jobs"] = {
            **usable,
            "ENGINE": f"django.db.backends.{engine}",
            "HOST": "127.0.0.1",
            "PORT": "1",
            "OPTIONS": {},
            **changes,
        }
        with jobs_on("jobs"):
            text = checked()
        connections.settings["jobs"] = usable  # Its driver may not be here.
    found = ids_in(text)
    assert "W013" in found
    return text, [number for number in found if number != "W013"]


def check_with(folder, *lines):
    """Run the check in a process whose jobs are on PostgreSQL and whose other rows are not."""
    jobs = f'DATABASES["jobs"] = databases.settings_of("{POSTGRESQL_URL}")'
    site = Site(folder, jobs, ROUTER, *lines, url=f"sqlite:///{folder / 'site.sqlite3'}")
    # Django's own checks of models, since 6.1, want the driver before ours can say it is missing.
    return site.manage("check", "--tag", "jobqueue")


def test_no_psycopg_is_e004(tmp_path):
    done = check_with(
        tmp_path, "import sys", 'sys.modules["psycopg"] = sys.modules["psycopg2"] = None'
    )

    assert done.returncode == 1
    assert "E004" in ids_in(done.stderr)
    assert 'The database "jobs" is PostgreSQL, and psycopg 3 cannot be imported' in done.stderr
    assert 'pip install "django-jobqueue[postgres]"' in done.stderr


def test_an_old_psycopg_is_e004(tmp_path):
    done = check_with(tmp_path, "import psycopg", 'psycopg.__version__ = "3.2.9"')

    assert done.returncode == 1
    assert "E004" in ids_in(done.stderr)
    assert "psycopg is 3.2.9; expected 3.2.10 or newer." in done.stderr


def test_the_installed_psycopg_is_fine(tmp_path):
    done = check_with(tmp_path)

    assert (done.returncode, ids_in(done.stderr)) == (0, [])


@pytest.mark.parametrize(
    ("version", "parts"), [("3.2.10", (3, 2, 10)), ("3.3", (3, 3)), ("3.3.0.dev1", (3, 3, 0))]
)
def test_a_version_is_read_by_its_numbers(version, parts):
    assert numbers(version) == parts


@pytest.mark.parametrize("age", [60, None])
def test_a_pool_with_persistent_connections_is_e006(age):
    text, found = said("postgresql", OPTIONS={"pool": True}, CONN_MAX_AGE=age)

    assert found == ["E006"]
    assert f'DATABASES["jobs"] has OPTIONS["pool"] and CONN_MAX_AGE = {age}' in text


def test_django_refuses_such_a_pool_indeed():
    with (
        alias(
            "jobs", ENGINE="django.db.backends.postgresql", OPTIONS={"pool": True}, CONN_MAX_AGE=60
        ),
        pytest.raises(Exception, match="doesn't support persistent connections"),
    ):
        connections["jobs"].pool  # noqa: B018 (a property that raises)


@pytest.mark.parametrize(
    "changes", [{"OPTIONS": {"pool": True}}, {"CONN_MAX_AGE": 60}, {"OPTIONS": {"pool": False}}]
)
def test_either_alone_is_fine(changes):
    assert said("postgresql", **({"CONN_MAX_AGE": 0} | changes))[1] == []


def test_the_port_of_pgbouncer_is_w008(jobqueue):
    text, found = said("postgresql", PORT=6432)

    assert found == ["W008"]
    assert 'DATABASES["jobs"] has the port 6432' in text
    jobqueue(NOTIFY=False)
    assert said("postgresql", PORT="6432")[1] == []


@pytest.mark.parametrize("mode", [None, "DEFERRED"])
def test_transactions_that_begin_by_reading_are_w005(mode):
    text, found = said("sqlite3", OPTIONS={"transaction_mode": mode} if mode else {})

    assert found == ["W005"]
    assert f'["transaction_mode"] is {mode!r}' in text


@pytest.mark.parametrize("mode", ["IMMEDIATE", "immediate", "EXCLUSIVE"])
def test_transactions_that_begin_by_writing_are_fine(mode):
    assert said("sqlite3", OPTIONS={"transaction_mode": mode})[1] == []


def test_an_old_sqlite_is_e005(monkeypatch):
    """No such library is here; its number is all that is changed."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.34.1")

    text, found = said("sqlite3", OPTIONS=databases.SQLITE_OPTIONS)

    assert found == ["E005"]
    assert "SQLite is 3.34.1; expected 3.35 or newer." in text


@pytest.mark.parametrize("level", ["repeatable read", "serializable", None])
def test_another_isolation_level_of_mysql_is_w007(level):
    text, found = said("mysql", OPTIONS={"isolation_level": level})

    assert found == ["W007"]
    assert f'["isolation_level"] is {level!r}' in text


@pytest.mark.parametrize("options", [{}, {"isolation_level": "READ COMMITTED"}])
def test_read_committed_is_fine(options):
    assert said("mysql", OPTIONS=options)[1] == []


def test_an_engine_of_somebody_else_is_left_alone():
    assert said("oracle")[1] == []


def test_a_router_to_an_unknown_alias_is_for_django_to_say():
    with jobs_on("nowhere"):
        assert ids_in(checked()) == ["W013"]
