"""What only the database itself can tell."""

import sqlite3
from types import SimpleNamespace

import django
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError

from django_jobqueue.checks import connected
from django_jobqueue.checks.connected import skip_locked
from tests.checks.looking import checked, ids_in
from tests.processes import Site


def site_with(folder, init_command):
    """Make a site on a new SQLite file, whose connections begin like that."""
    lines = f'DATABASES["default"]["OPTIONS"]["init_command"] = "{init_command}"'
    return Site(folder, lines, url=f"sqlite:///{folder / 'site.sqlite3'}")


def test_a_journal_that_is_not_wal_is_w006(tmp_path):
    site = site_with(tmp_path, "PRAGMA synchronous=NORMAL;")

    done = site.manage("check", "--database", "default")

    assert (done.returncode, ids_in(done.stderr)) == (0, ["W006"])
    assert 'The journal mode of the database "default" is delete' in done.stderr


def test_a_file_that_was_made_wal_once_stays_so(tmp_path):
    file = sqlite3.connect(tmp_path / "site.sqlite3")
    file.execute("PRAGMA journal_mode=WAL")
    file.close()

    done = site_with(tmp_path, "PRAGMA synchronous=NORMAL;").manage(
        "check", "--database", "default"
    )

    assert (done.returncode, ids_in(done.stderr)) == (0, [])


@pytest.mark.skipif(django.VERSION >= (6, 1), reason="Django's own checks of models connect")
def test_it_does_not_connect_unless_asked_to(tmp_path):
    done = site_with(tmp_path, "PRAGMA synchronous=NORMAL;").manage("check")

    assert (done.returncode, ids_in(done.stderr)) == (0, [])
    assert not (tmp_path / "site.sqlite3").exists()


def test_a_worker_says_so_when_it_starts(tmp_path):
    site = site_with(tmp_path, "PRAGMA synchronous=NORMAL;")
    assert site.manage("migrate").returncode == 0

    done = site.manage("run_jobworker", "--drain")

    assert done.returncode == 0
    assert done.stderr.count("django_jobqueue.W006") == 1


@pytest.mark.django_db
def test_the_database_of_the_tests_is_fine():
    assert ids_in(checked("--database", "default")) == []


def test_a_database_in_memory_has_no_journal_to_speak_of(tmp_path):
    done = Site(tmp_path, url="sqlite:///:memory:").manage("check", "--database", "default")

    assert ids_in(done.stderr) == []


@pytest.mark.parametrize(
    ("maria", "version", "expected"),
    [
        (True, (10, 5, 9), ["E008"]),
        (True, (10, 6, 0), []),
        (False, (8, 0, 0), ["E008"]),
        (False, (8, 0, 11), []),
    ],
)
def test_a_server_without_skip_locked_is_e008(maria, version, expected):
    """Neither server is here: what its connection would say is told by hand."""
    server = SimpleNamespace(alias="jobs", mysql_is_mariadb=maria, mysql_version=version)

    messages = skip_locked(server)

    assert [message.id.removeprefix("django_jobqueue.") for message in messages] == expected


def test_a_database_that_cannot_be_opened_is_w015(tmp_path):
    """Django itself says nothing of it: its own checks of SQLite do not connect."""
    site = Site(tmp_path, url=f"sqlite:///{tmp_path}/nowhere/site.sqlite3")

    for options in (["--database", "default"], ["--tag", "jobqueue", "--database", "default"]):
        done = site.manage("check", *options)
        assert (done.returncode, ids_in(done.stderr)) == (0, ["W015"])
        assert "Traceback" not in done.stderr
        assert 'The database "default" could not be asked: unable to open' in done.stderr


def test_a_file_that_is_no_database_is_w015(tmp_path):
    (tmp_path / "site.sqlite3").write_text("precious " * 100)

    done = site_with(tmp_path, "PRAGMA synchronous=NORMAL;").manage(
        "check", "--database", "default"
    )

    assert (done.returncode, ids_in(done.stderr)) == (0, ["W015"])
    assert "file is not a database" in done.stderr


@pytest.mark.parametrize(
    "error", [OperationalError("gone\nat all."), ImproperlyConfigured("gone.")]
)
def test_any_server_that_does_not_answer_is_w015(monkeypatch, error):
    """MySQL is not here: what its driver raises when its version is asked is told by hand."""

    class Server:
        vendor, alias = "mysql", "default"

        @property
        def mysql_is_mariadb(self):
            raise error

    monkeypatch.setattr(connected, "connections", {"default": Server()})

    (message,) = connected.check_connected(databases=["default"])

    assert message.id == "django_jobqueue.W015"
    assert message.msg == 'The database "default" could not be asked: gone.'


def test_a_postgresql_that_is_away_is_not_asked(tmp_path):
    site = Site(tmp_path, url="postgres://nobody@127.0.0.1:1/nothing")

    done = site.manage("check", "--database", "default")

    assert (done.returncode, ids_in(done.stderr)) == (0, [])
