"""Can the database be used?"""

import socket
import threading
import time

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from django_jobqueue.health import bounded, ready
from tests import databases
from tests.aliases import alias
from tests.marks import on_postgresql

pytestmark = pytest.mark.django_db(transaction=True)


def codes(report):
    return [problem.code for problem in report.problems]


def test_a_migrated_database_is_ready():
    assert ready().healthy


def test_a_missing_migration_is_named():
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("django_jobqueue", "0001_initial")
    try:
        report = ready()
    finally:
        recorder.record_applied("django_jobqueue", "0001_initial")

    assert codes(report) == ["migrations-missing"]
    assert "0001_initial" in report.problems[0].text


def away(tmp_path):
    """Return changes that make an alias point to no database."""
    if connection.vendor == databases.SQLITE:
        return {"NAME": str(tmp_path / "no" / "folder" / "site.sqlite3")}
    return {"HOST": "127.0.0.1", "PORT": "1"}


def test_a_database_that_is_down_is_told_and_nothing_is_raised(tmp_path):
    with alias("away", **away(tmp_path)):
        report = ready(using="away")

    assert codes(report) == ["database-away"]
    assert report.problems[0].text.startswith('The database "away" does not answer: ')


@on_postgresql
def test_a_server_that_accepts_and_says_nothing_is_given_up_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        with alias("silent", HOST="127.0.0.1", PORT=port):
            began = time.monotonic()
            report = ready(using="silent")
            lasted = time.monotonic() - began

    assert codes(report) == ["database-away"]
    assert lasted < bounded.ANSWER_SECONDS + 1


def test_a_question_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr(bounded, "ANSWER_SECONDS", 0.2)
    end = threading.Event()
    try:
        with pytest.raises(bounded.NoAnswer, match=r"no answer within 0\.2 s"):
            bounded.ask("default", lambda _: end.wait(30))
    finally:
        end.set()
        join_probes()


@on_postgresql
def test_a_slow_statement_is_ended_by_the_server(monkeypatch):
    monkeypatch.setattr(bounded, "STATEMENT_MILLISECONDS", 100)

    def sleep(asked):
        with asked.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")

    with pytest.raises(bounded.NoAnswer, match="statement timeout"):
        bounded.ask("default", sleep)


def test_whatever_a_question_raises_is_no_answer():
    with pytest.raises(bounded.NoAnswer, match="ZeroDivisionError: division by zero"):
        bounded.ask("default", lambda _: 1 / 0)


def test_a_question_leaves_no_connection_behind():
    before = connection.connection

    assert bounded.ask("default", lambda asked: asked.connection is not before)
    join_probes()

    assert connection.connection is before


def join_probes():
    for thread in threading.enumerate():
        if thread.name == "health":
            thread.join(10)
            assert not thread.is_alive()
