"""The fake clock tells every time that the queue reads or writes, on every database."""

import re
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import TestCase, override_settings

import django_jobqueue
from django_jobqueue import JobRequest, job_handler, schedule
from django_jobqueue.database import clock as database_clock
from django_jobqueue.database.clock import database_now
from django_jobqueue.database.session import Session
from django_jobqueue.models import Job, JobStatsRollup, QueueControl, WorkerProcess
from django_jobqueue.querysets import tables_of
from django_jobqueue.states import StuckSignal
from django_jobqueue.testing import drain, fake_clock, reap, run_job, run_schedules
from django_jobqueue.worker.eligibility import Eligibility
from django_jobqueue.worker.presence import Presence
from tests.marks import committed, on_postgresql

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)
LEASES = {"site.chain": timedelta(seconds=90)}

PACKAGE = Path(django_jobqueue.__file__).parent
TIME_IN_SQL = re.compile(
    r"statement_timestamp|clock_timestamp|transaction_timestamp|current_timestamp|localtimestamp"
    r"|(?<![.\w])(?<!def )now\(|timezone\.now|(?<![.])strftime\(",
    re.IGNORECASE,
)


@pytest.fixture
def clock(db):
    with fake_clock(NEW_YEAR) as clock:
        yield clock


def times_of(job):
    """Every time that the row of a job holds."""
    return {
        value
        for value in Job.objects.filter(pk=job.pk).values().get().values()
        if isinstance(value, datetime)
    }


def test_every_transition_writes_its_time(clock):
    one = Job.objects.enqueue("site.chain", {"left": 0})
    two, late = Job.objects.enqueue_many(
        [JobRequest("site.chain"), JobRequest("site.chain", delay=timedelta(hours=1))]
    )
    assert times_of(one) | times_of(two) == {NEW_YEAR}
    assert times_of(late) == {NEW_YEAR, NEW_YEAR + timedelta(hours=1)}
    assert Job.objects.seconds_until_due() == 3600

    clock.advance(minutes=1)
    started = clock.now
    (job, other) = Job.objects.claim([uuid4(), uuid4()], LEASES)
    assert times_of(job) == {NEW_YEAR, started, started + timedelta(seconds=90)}

    clock.advance(seconds=30)
    assert Job.objects.renew([job.claim]) == {job.claim.token}
    assert clock.now + timedelta(seconds=90) in times_of(job)

    clock.advance(seconds=30)
    assert Job.objects.release([job.claim]) == {job.claim.token}
    assert times_of(job) == {NEW_YEAR, started, clock.now}
    assert job.attempt_history.get().finished_at == clock.now

    clock.advance(seconds=45)
    (reaped,) = reap()
    assert (reaped.job_id, reaped.signal) == (other.pk, StuckSignal.LEASE_EXPIRED)
    assert other.attempt_history.get().finished_at == clock.now

    clock.advance(seconds=1)
    Job.objects.cancel(late)
    assert times_of(late) == {NEW_YEAR, NEW_YEAR + timedelta(hours=1), clock.now}
    clock.advance(seconds=1)
    Job.objects.retry(late)
    assert times_of(late) == {NEW_YEAR, clock.now}

    Job.objects.pause("queue", "default")
    assert QueueControl.objects.get().paused_at == clock.now


def test_attempts_that_end_hold_its_time(clock):
    done = run_job("site.chain", {"left": 0}).job
    clock.advance(minutes=1)
    failed = run_job("site.permanent", raise_errors=False).job
    clock.advance(minutes=1)
    retried = run_job("site.flaky", raise_errors=False).job
    deferred = run_job("site.limited", raise_errors=False).job

    assert times_of(done) == {NEW_YEAR}
    assert times_of(failed) == {NEW_YEAR + timedelta(minutes=1)}
    assert failed.attempt_history.get().finished_at == failed.finished_at
    assert retried.ready_at == retried.scheduled_for
    assert timedelta(0) < retried.scheduled_for - clock.now <= timedelta(seconds=2)
    assert deferred.rate_limited_at == clock.now


def test_scheduled_jobs_become_due_as_it_moves(clock):
    Job.objects.enqueue("site.chain", {"left": 0}, delay=timedelta(hours=6))
    Job.objects.enqueue("site.chain", {"left": 0}, scheduled_for=NEW_YEAR + timedelta(days=1))

    assert [len(drain()), Job.objects.due().count()] == [0, 0]
    clock.advance(hours=6)
    assert Job.objects.due().count() == 1
    assert len(drain()) == 1
    clock.move_to("2030-01-02T01:00+01:00")
    assert len(drain()) == 1


def test_a_lease_expires_and_its_job_is_reaped_in_no_time(clock):
    began = time.monotonic()
    job = Job.objects.enqueue("site.chain", {"left": 0})
    Job.objects.claim([uuid4()], LEASES)

    clock.advance(seconds=90)
    assert reap() == []
    clock.advance(seconds=1)
    (reaped,) = reap()

    assert (reaped.job_id, reaped.failed) == (job.pk, False)
    assert drain().jobs == [job]
    assert time.monotonic() - began < 5


def test_a_claim_that_died_too_often_fails_its_job(clock):
    job = Job.objects.enqueue("site.chain", {"left": 0})
    for _ in range(3):
        Job.objects.claim([uuid4()], LEASES)
        clock.advance(hours=1)
        (reaped,) = reap()

    job.refresh_from_db()
    assert (reaped.failed, job.status, job.finished_at) == (True, "failed", clock.now)


def test_old_jobs_are_purged(clock):
    run_job("site.chain", {"left": 0})
    clock.advance(days=29)
    young = run_job("site.chain", {"left": 0}).job
    assert run_job("jobqueue.history.purge").result == {"purged": 0}

    clock.advance(days=2)

    assert run_job("jobqueue.history.purge").result == {"purged": 1}
    assert Job.objects.filter(type="site.chain").get() == young
    assert JobStatsRollup.objects.get(type="site.chain").succeeded_count == 1


def nightly():
    @schedule("nightly", "30 2 * * *", timezone="Europe/Berlin", catch_up="all")
    @job_handler("site.nightly")
    def nightly(job):
        return job.reason


def test_schedules_fire_as_it_moves(clock):
    nightly()
    assert run_schedules() == []

    clock.move_to("2030-01-01T01:29Z")
    assert [job for job in run_schedules() if job.type == "site.nightly"] == []
    clock.advance(minutes=1)
    (job,) = [job for job in run_schedules() if job.type == "site.nightly"]

    assert (job.created_at, job.reason) == (clock.now, "schedule nightly")
    assert run_schedules() == []
    clock.advance(days=3)
    assert len([job for job in run_schedules() if job.type == "site.nightly"]) == 3


@pytest.mark.parametrize(
    ("start", "ticks"),
    [
        ("2026-03-28T12:00Z", ["29 03:00 +0200", "30 02:30 +0200"]),
        ("2026-10-24T12:00Z", ["25 02:30 +0200", "26 02:30 +0100"]),
    ],
    ids=["spring", "autumn"],
)
@pytest.mark.django_db
def test_a_schedule_ticks_once_a_night_whatever_the_clocks_do(start, ticks):
    nightly()
    found = []
    with fake_clock(start) as clock:
        run_schedules()
        for _ in range(2 * 48):
            clock.advance(minutes=30)
            fired = [job for job in run_schedules() if job.type == "site.nightly"]
            found += [job.created_at.astimezone(ZoneInfo("Europe/Berlin")) for job in fired]

    assert [tick.strftime("%d %H:%M %z") for tick in found] == ticks


def test_a_worker_process_reports_itself_by_it(clock):
    eligibility = Eligibility()
    Presence(Job.objects, eligibility, slots=1, busy=lambda: 0)()

    assert WorkerProcess.objects.get().seen_at == clock.now


def test_filters_live_by_it_too(clock):
    job = Job.objects.enqueue("site.chain")
    Job.objects.claim([uuid4()], LEASES)
    assert not Job.objects.all().stuck(timedelta(minutes=30)).exists()

    clock.advance(hours=1)

    assert Job.objects.all().stuck(timedelta(minutes=30)).get().pk == job.pk


@committed
def test_it_tells_the_time_in_every_thread():
    found = []

    def read():
        found.append(database_now(connection))
        connection.close()

    with fake_clock(NEW_YEAR):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()

    assert found == [NEW_YEAR]


@pytest.mark.django_db
def test_afterwards_the_database_tells_the_time_again():
    with fake_clock(NEW_YEAR), fake_clock("2031-01-01T00:00Z") as inner:
        assert Job.objects.now() == inner.now
    with fake_clock(NEW_YEAR):
        assert Job.objects.now() == NEW_YEAR

    assert Job.objects.enqueue("site.chain").created_at < NEW_YEAR
    assert database_clock._pretended is None


@pytest.mark.django_db
def test_without_a_start_it_begins_now():
    before = Job.objects.now()
    with fake_clock() as clock:
        assert before <= clock.now
        assert Job.objects.now() == clock.now == Job.objects.now()


@pytest.mark.django_db
@fake_clock("2030-01-01T00:00Z")
def test_it_decorates():
    assert Job.objects.enqueue("site.chain").created_at == NEW_YEAR


class ADecoratedMethod(TestCase):
    @fake_clock("2030-01-01T00:00Z")
    def test_it_decorates_a_method(self):
        assert Job.objects.enqueue("site.chain").created_at == NEW_YEAR


def test_it_goes_forward_only(clock):
    assert clock.advance(timedelta(days=1), hours=2) == NEW_YEAR + timedelta(hours=26)
    with pytest.raises(ValueError, match="cannot go back to 2030-01-01T00:00:00"):
        clock.move_to(NEW_YEAR)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(seconds=-1)


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        ("2026-01-01T00:00", ValueError, "has no time zone; add one"),
        (datetime(2026, 1, 1), ValueError, "has no time zone; add one"),  # noqa: DTZ001
        ("yesterday", ValueError, "Invalid isoformat"),
        (7, TypeError, "expected a datetime or text"),
    ],
)
def test_a_start_that_cannot_be_meant_is_refused(start, error, words):
    with pytest.raises(error, match=words), fake_clock(start):
        pass


@pytest.mark.django_db
@override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin")
def test_a_site_without_time_zones_has_its_own():
    with fake_clock("2030-07-01T12:00") as clock:
        noon = datetime(2030, 7, 1, 12)  # noqa: DTZ001 (USE_TZ is off)
        job = run_job("site.chain", {"left": 0}).job

        assert clock.now == datetime(2030, 7, 1, 10, tzinfo=UTC)
        assert Job.objects.now() == job.created_at == job.finished_at == noon


@on_postgresql
@pytest.mark.django_db
def test_outside_a_test_a_statement_is_sent_as_it_is(monkeypatch):
    sent = []
    session = Session(tables_of(Job), "default")
    fetch = "django_jobqueue.database.session.fetch_all"
    monkeypatch.setattr(fetch, lambda connection, text, parameters: sent.append((text, parameters)))
    text, parameters = "SELECT statement_timestamp()", {"limit": 1}

    session.fetch(text, parameters)

    assert sent[0][0] is text
    assert sent[0][1] is parameters


def test_no_other_place_asks_a_database_for_the_time():
    allowed = {
        "database/clock.py",  # the one place
        "database/statements.py",  # in the words of NOW
        "database/search.py",
        "database/expressions.py",  # reads columns by strftime
        "insights/__init__.py",  # a function of its own is called now()
        "insights/overview.py",
    }
    places = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if TIME_IN_SQL.search(path.read_text())
    }

    assert places <= allowed


@pytest.mark.parametrize("module", ["statements", "search"])
def test_statements_ask_for_the_time_in_the_words_that_are_replaced(module):
    text = (PACKAGE / "database" / f"{module}.py").read_text()

    assert set(TIME_IN_SQL.findall(text)) == {"statement_timestamp"}
    assert text.count("statement_timestamp") == text.count(database_clock.NOW)
