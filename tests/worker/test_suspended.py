"""Workers and their database stand still, or their clocks are wrong: no live claim is reaped."""

import os
import signal
import threading

import pytest

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.marks import on_postgresql
from tests.processes import eventually
from tests.throwaway_postgres import children_of
from tests.worker.own_server import own_server

pytestmark = pytest.mark.usefixtures("transactional_db")

HARD = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp.hard"]'

LEASE_SECONDS = 2
QUICK = {"LEASE_CAP": LEASE_SECONDS, "REAPER_INTERVAL": 0.5}
HALT_SECONDS = 2 * LEASE_SECONDS


@pytest.fixture(scope="module")
def module_server(tmp_path_factory):
    with own_server(tmp_path_factory.mktemp("own_server")) as server:
        yield server


@pytest.fixture
def server(module_server, transactional_db):
    with module_server.for_one_test() as server:
        yield server


def pass_by(seconds):
    threading.Event().wait(seconds)


def processes_of(*workers):
    """Return the ids of the processes in which these workers run, supervisors included."""
    return [pid for worker in workers for pid in (worker.pid, *children_of(worker.pid))]


def send_all(pids, number):
    for pid in pids:
        os.kill(pid, number)


@on_postgresql
def test_workers_and_database_suspended_together_start_nothing_twice(site, server, notebook):
    """As when a whole machine sleeps for longer than any lease. The leases are over at once."""
    project = site(HARD, **QUICK)
    project.url = server.url
    payload = {**notebook.payload, "seconds": 4}
    jobs = server.enqueue("hard.wait", payload, 4)
    jobs += server.enqueue("hard.wait", {**payload, "seconds": 0.1}, 80)
    with (
        project.worker("--concurrency", "4") as first,
        project.worker("--processes", "2", "--concurrency", "2") as second,
    ):
        eventually(lambda: len(notebook.ids()) > 20, "the workers do not run")
        asleep = processes_of(first, second)
        send_all(asleep, signal.SIGSTOP)
        server.suspend()
        pass_by(HALT_SECONDS)
        server.resume()
        pass_by(0.5)
        send_all(asleep, signal.SIGCONT)
        eventually(
            lambda: server.count(status=JobStatus.SUCCEEDED) == len(jobs),
            f"not all succeeded: {first.errors}{second.errors}",
        )
        for worker in (first, second):
            worker.terminate()
            assert worker.exit_code() == 0

    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert server.ends() == {(JobStatus.SUCCEEDED, 1): len(jobs)}


@on_postgresql
def test_a_database_suspended_alone_starts_nothing_twice(site, server, notebook):
    """Workers give up the silent sessions; their claims may be committed long afterwards."""
    project = site(HARD, **QUICK)
    project.url = server.url
    jobs = server.enqueue("hard.wait", {**notebook.payload, "seconds": 0.1}, 150)
    with (
        project.worker("--concurrency", "4") as first,
        project.worker("--concurrency", "4") as second,
    ):
        eventually(lambda: len(notebook.ids()) > 20, "the workers do not run")
        server.suspend()
        pass_by(HALT_SECONDS)
        server.resume()
        eventually(
            lambda: server.count(status=JobStatus.SUCCEEDED) == len(jobs),
            f"not all succeeded: {first.errors}{second.errors}",
        )
        for worker in (first, second):
            worker.terminate()
            assert worker.exit_code() == 0

    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert server.ends() == {(JobStatus.SUCCEEDED, 1): len(jobs)}


WRONG_CLOCK = """
import time
from datetime import timedelta
from django.utils import timezone
seconds, right, right_now = {seconds}, time.time, timezone.now
time.time = lambda: right() + seconds
timezone.now = lambda: right_now() + timedelta(seconds=seconds)
"""


@on_postgresql  # SQLite's time is that of the process.
def test_workers_whose_clocks_are_ten_minutes_off_reap_only_the_dead(site, notebook, meeting):
    """A job outlasts its lease twice while both watch, and that of a killed worker comes back."""
    alive = Job.objects.enqueue("test.meet", meeting.payload)
    dead = Job.objects.enqueue("hard.wait", {**notebook.payload, "seconds": 60})
    options = ["--concurrency", "1", "--types", "test.meet"]
    with (
        site(WRONG_CLOCK.format(seconds=600), HARD, **QUICK).worker(*options) as fast,
        site(WRONG_CLOCK.format(seconds=-600), HARD, **QUICK).worker(*options) as slow,
    ):
        guest = meeting.guest()
        with site(HARD, **QUICK, REAPER_ENABLED=False).worker("--types", "hard.wait") as victim:
            eventually(notebook.ids, "the job did not start")
            victim.kill()
        later = Job.objects.enqueue("test.meet", meeting.payload, delay=0.5)
        meeting.guest().let_go("on time")
        pass_by(2 * LEASE_SECONDS)
        eventually(lambda: Job.objects.ready().filter(pk=dead.pk).exists(), "it was not reaped")
        guest.let_go("once")
        eventually(
            lambda: Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 2,
            f"not all succeeded: {fast.errors}{slow.errors}",
        )
    for job in (alive, later):
        job.refresh_from_db()
        assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 1)
    assert dead.attempt_history.get().outcome == SettleOutcome.REAPED
    assert meeting.nobody_waits()


def test_a_worker_whose_slots_all_hang_reaps_and_promotes_all_the_same(site, meeting, notebook):
    """A second worker dies with a job; the first has no free slot, and a third takes the job."""
    hung = [Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2)]
    with site(HARD, **QUICK).worker("--concurrency", "2", "--types", "test.meet") as worker:
        guests = [meeting.guest() for _ in hung]
        job = Job.objects.enqueue("hard.wait", {**notebook.payload, "seconds": 60})
        due = Job.objects.enqueue("test.echo", delay=0.5)
        with site(HARD, REAPER_ENABLED=False, LEASE_CAP=1).worker("--types", "hard.wait") as dying:
            eventually(notebook.ids, "the job did not start")
            dying.kill()

        eventually(lambda: Job.objects.ready().filter(pk=job.pk).exists(), "it was not reaped")
        eventually(lambda: Job.objects.ready().filter(pk=due.pk).exists(), "it was not promoted")
        job.refresh_from_db()
        assert (job.attempts, job.attempt_history.get().outcome) == (1, SettleOutcome.REAPED)
        for guest in guests:
            guest.let_go()
        worker.terminate()

        assert worker.exit_code() == 0
    for job in hung:
        job.refresh_from_db()
        assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 1)
