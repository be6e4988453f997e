"""The scheduler as a chore, and many of them at once."""

import os
import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import connection, connections

from django_jobqueue import job_handler, registry, schedule
from django_jobqueue.database.clock import database_now
from django_jobqueue.models import Job, Schedule
from django_jobqueue.schedules.firing import fire
from django_jobqueue.worker.scheduler import LONGEST_PAUSE_SECONDS, Scheduler
from tests import databases
from tests.schedules.conftest import YEARLY, tick
from tests.threads import together

SECONDS = 60
POLL_SECONDS = 5.0
WORKERS = 8

PROCESS = """
import sys, django
django.setup()
from django_jobqueue.models import Job
from django_jobqueue.schedules.firing import fire
from django_jobqueue.worker.scheduler import Scheduler
scheduler = Scheduler(Job.objects, 5.0)
Job.objects.count()
print("ready", flush=True)
sys.stdin.readline()
scheduler()
"""


@pytest.fixture(autouse=True)
def _alone(settings, transactional_db):
    """Handlers of one test only, and no nightly purge."""
    settings.JOBQUEUE = {"PURGE_ENABLED": False}
    before = registry.handlers()
    yield
    registry._handlers.clear()
    registry._handlers.update(before)


@pytest.fixture
def scheduler():
    return Scheduler(Job.objects, POLL_SECONDS)


def make(name="yearly", ticks=1, **fields):
    fields = {"type": "test.echo", "cron": YEARLY, "catch_up": "all", "limit": 100} | fields
    return Schedule.objects.create(name=name, next_tick_at=tick(ticks - 1), **fields)


def look():
    """Do what a worker does that has just started."""
    Scheduler(Job.objects, POLL_SECONDS)()


class TestTheChore:
    def test_a_declared_schedule_is_synced_and_fires_from_its_first_tick_on(self, scheduler):
        @schedule("mine", YEARLY, catch_up="once")
        @job_handler("reports.build")
        def build(job):
            pass

        scheduler()
        row = Schedule.objects.get()
        assert (row.name, row.type) == ("mine", "reports.build")
        assert row.next_tick_at == tick(-1)
        assert not Job.objects.exists()

        Schedule.objects.update(next_tick_at=tick())
        scheduler()

        assert Job.objects.get().type == "reports.build"

    def test_a_schedule_declared_later_is_synced_too(self, scheduler):
        scheduler()

        @schedule("late", YEARLY)
        @job_handler("reports.build")
        def build(job):
            pass

        scheduler()

        assert Schedule.objects.filter(name="late").exists()

    def test_one_that_is_not_declared_any_more_does_not_fire(self, scheduler):
        make(declared_in_code=True)

        scheduler()

        assert not Job.objects.exists()

    def test_it_comes_again_for_the_next_tick_or_after_the_poll_interval(self, scheduler):
        assert scheduler() == POLL_SECONDS
        assert Scheduler(Job.objects, 3600)() == LONGEST_PAUSE_SECONDS
        make()
        assert scheduler() == POLL_SECONDS

        soon = database_now(connection) + timedelta(seconds=2)
        Schedule.objects.update(next_tick_at=soon)

        assert 0 < scheduler() <= 2

    def test_an_unusable_schedule_is_told_once_and_blocks_no_other(self, scheduler, caplog):
        broken = make("broken", ticks=3)
        Schedule.objects.filter(pk=broken.pk).update(cron="61 * * * *")
        make("good")

        for _ in range(3):
            assert scheduler() > 0

        assert [job.reason for job in Job.objects.all()] == ["schedule good"]
        told = [record for record in caplog.records if "cannot be fired" in record.getMessage()]
        assert len(told) == 1
        assert "Bad minute" in told[0].getMessage()

    def test_one_that_the_database_refuses_blocks_no_other(self, scheduler, caplog):
        broken = make("broken", ticks=3)
        Schedule.objects.filter(pk=broken.pk).update(payload=[1])
        make("good")

        scheduler()

        assert [job.reason for job in Job.objects.all()] == ["schedule good"]
        assert "payload is of type list" in caplog.text

    def test_a_mended_schedule_fires_and_may_be_told_again(self, scheduler, caplog):
        make("mended")
        for number in (1, 2):
            Schedule.objects.update(cron="61 * * * *", next_tick_at=tick(), last_tick_at=None)
            scheduler()
            scheduler()
            Schedule.objects.update(cron=YEARLY)
            scheduler()
            assert caplog.text.count("cannot be fired") == number

        assert Job.objects.count() == 1


class TestManyWorkers:
    @pytest.mark.parametrize("round_number", range(3))
    def test_eight_threads_make_one_job_a_tick(self, round_number):
        for number in range(3):
            make(f"yearly {number}", ticks=5)

        together(*[look] * WORKERS)

        keys = list(Job.objects.values_list("dedup_key", flat=True))
        assert len(keys) == len(set(keys)) == 15

    def test_eight_threads_make_one_job_a_tick_when_jobs_end_at_once(self):
        """The dedup key alone would not keep a second job away."""
        make(ticks=1)

        def work():
            look()
            for job in Job.objects.pending():
                Job.objects.cancel(job)

        together(*[work] * WORKERS)

        assert Job.objects.count() == 1

    @pytest.mark.parametrize("round_number", range(5))
    def test_one_of_eight_that_fire_a_tick_makes_its_job(self, round_number):
        """The others make none; that the dedup key would give them the same job is not asked."""
        row = make()

        made = together(*[lambda: fire(Job.objects, row.pk)] * WORKERS)

        assert sorted(map(len, made)) == [0] * (WORKERS - 1) + [1]

    def test_eight_threads_sync_one_row(self):
        @schedule("mine", YEARLY)
        @job_handler("reports.build")
        def build(job):
            pass

        together(*[look] * WORKERS)

        assert Schedule.objects.get().next_tick_at == tick(-1)

    def test_eight_processes_make_one_job_a_tick(self, environ):
        rows = [make(f"yearly {number}", ticks=20) for number in range(3)]

        with ExitStack() as stack:
            processes = [
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-c", PROCESS],
                        env=environ,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                )
                for _ in range(WORKERS)
            ]
            for process in processes:
                assert process.stdout.readline() == "ready\n"
            for process in processes:
                process.stdin.write("go\n")
                process.stdin.flush()
            codes = [process.wait(SECONDS) for process in processes]

        assert codes == [0] * WORKERS
        keys = list(Job.objects.values_list("dedup_key", flat=True))
        assert len(keys) == len(set(keys)) == 60
        for row in rows:
            row.refresh_from_db()
            assert row.last_tick_at == tick()


@pytest.fixture
def environ():
    """The environment of a process on the test's database."""
    settings = connections["default"].settings_dict
    kind = databases.chosen_kind(os.environ)
    return os.environ | {
        "DATABASE_URL": databases.url_of(settings),
        "TEST_DATABASE": kind,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
