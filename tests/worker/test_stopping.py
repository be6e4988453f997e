"""Real worker processes and supervisors, told to stop at bad moments."""

import os
import signal
import time

import pytest

from django_jobqueue.models import Job, WorkerProcess
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.marks import on_postgresql
from tests.processes import eventually
from tests.throwaway_postgres import children_of

pytestmark = pytest.mark.usefixtures("transactional_db")

HARD = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp.hard"]'

SLACK_SECONDS = 5
"""The contract: gone at the latest this long after the grace."""

PROCESSES = [[], ["--processes", "2"]]


def succeeded(job):
    return Job.objects.filter(pk=job.pk, status=JobStatus.SUCCEEDED).exists()


def started(worker, number):
    """Return the process ids of the workers that began, once there are so many."""

    def pids():
        lines = [line for line in worker.output.splitlines() if " started: " in line]
        found = [int(line.split()[1].rpartition(":")[2]) for line in lines]
        return found if len(found) >= number else None

    return eventually(pids, f"fewer than {number} workers began:\n{worker.output}{worker.errors}")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 (a file that may vanish while read)
            return stat.read().rpartition(") ")[2][0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("options", PROCESSES)
def test_an_idle_worker_ends_at_once_and_takes_its_row_along(site, options):
    number = 2 if options else 1
    with site(POLL_INTERVAL=60).worker(*options) as worker:
        started(worker, number)
        eventually(lambda: WorkerProcess.objects.count() == number, "the worker does not report")
        before = time.monotonic()
        worker.terminate()

        assert worker.exit_code(SLACK_SECONDS) == 0
        assert time.monotonic() - before < 3  # In an undisturbed second; this machine may be busy.
    assert worker.errors == ""
    assert worker.output.count(" stopped (received SIGTERM): no jobs.") == number
    assert not WorkerProcess.objects.exists()


@on_postgresql
def test_a_job_of_ten_seconds_is_handed_back_and_taken_at_once_by_a_worker_that_sleeps(
    site, notebook
):
    """The second worker would look again in a minute only: the release must wake it."""
    project = site(HARD, POLL_INTERVAL=60, SHUTDOWN_GRACE=1)
    job = Job.objects.enqueue("hard.wait", {**notebook.payload, "seconds": 10})
    with project.worker("--concurrency", "1") as first:
        eventually(notebook.ids, "the job did not start")
        with project.worker("--concurrency", "1") as second:
            # A job that ran there shows that it listens and has nothing else to do.
            other = Job.objects.enqueue("test.echo")
            eventually(lambda: succeeded(other), "the second worker does not run")
            before = time.monotonic()
            first.terminate()

            assert first.exit_code(1 + SLACK_SECONDS) == 0
            eventually(lambda: len(notebook.ids()) == 2, "nobody took the job", 3)
            assert time.monotonic() - before < 1 + 3
            job.refresh_from_db()
            assert (job.status, job.attempts) == (JobStatus.RUNNING, 1)
            assert f":{second.pid}:" in job.worker
            assert job.attempt_history.get().outcome == SettleOutcome.RELEASED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_counts_once_and_running_jobs_finish(site, meeting, number):
    """Supervisor and children get it at once, as from a terminal or a service manager."""
    jobs = [Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2)]
    waiting = Job.objects.enqueue("test.meet", meeting.payload, priority=1)
    with site(SHUTDOWN_GRACE=600).worker("--processes", "2", "--concurrency", "1") as worker:
        guests = [meeting.guest() for _ in range(2)]
        for pid in (worker.pid, *children_of(worker.pid)):
            os.kill(pid, number)
        # Had it counted twice, the jobs would now be handed back.
        with pytest.raises(AssertionError, match="still runs"):
            worker.exit_code(1.5)
        for guest in guests:
            guest.let_go("finished")

        assert worker.exit_code() == 0
    for job in jobs:
        job.refresh_from_db()
        assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "finished", 1)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.attempts) == (JobStatus.PENDING, 0)


def test_a_second_signal_to_a_supervisor_hands_everything_back(site, meeting):
    jobs = [Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2)]
    with site(SHUTDOWN_GRACE=600).worker("--processes", "2", "--concurrency", "1") as worker:
        for _ in jobs:
            meeting.guest()
        worker.terminate()
        worker.send(signal.SIGINT)

        assert worker.exit_code(SLACK_SECONDS) == 0
    for job in jobs:
        job.refresh_from_db()
        assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
        assert job.attempt_history.get().outcome == SettleOutcome.RELEASED


def test_a_supervisor_ends_in_time_although_its_childrens_jobs_do_not(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=0.5).worker("--processes", "2", "--concurrency", "1") as worker:
        meeting.guest()
        worker.terminate()

        assert worker.exit_code(0.5 + SLACK_SECONDS) == 0
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_a_signal_while_the_children_still_start_is_a_clean_stop(site):
    job = Job.objects.enqueue("test.echo")
    with site().worker("--processes", "2") as worker:
        children = eventually(
            # The two workers, and Python's helper.
            lambda: len(found := children_of(worker.pid)) == 3 and found,
            "no children",
        )
        for pid in (worker.pid, *children):
            os.kill(pid, signal.SIGTERM)

        assert worker.exit_code() == 0
    assert worker.errors == ""
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_a_worker_with_abandoned_handlers_ends_in_time(site, notebook):
    jobs = [Job.objects.enqueue("hard.hang", notebook.payload) for _ in range(3)]
    with site(HARD, SHUTDOWN_GRACE=1).worker("--concurrency", "3") as worker:
        eventually(
            lambda: Job.objects.filter(status=JobStatus.FAILED).count() == len(jobs),
            "the handlers were not abandoned",
        )
        worker.terminate()

        assert worker.exit_code(3) == 0
    assert worker.last_line.endswith("(received SIGTERM): 3 failed.")


@pytest.mark.parametrize("options", PROCESSES)
def test_recycling_never_hands_a_job_back(site, meeting, options):
    """The grace is for signals: a worker that used up its jobs waits for the last of them."""
    first = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=0.1).worker(
        *options, "--max-jobs", "1", "--concurrency", "1"
    ) as worker:
        guest = meeting.guest()
        with pytest.raises(AssertionError, match="still runs"):
            worker.exit_code(1)
        first.refresh_from_db()
        assert (first.status, first.attempts) == (JobStatus.RUNNING, 1)
        guest.let_go("finished")
        eventually(lambda: succeeded(first), "the job was not finished")
        if options:
            worker.terminate()

        assert worker.exit_code() == 0
    first.refresh_from_db()
    assert (first.result, first.attempts) == ("finished", 1)
    assert not first.attempt_history.exists()


def test_a_child_whose_supervisor_was_killed_finishes_its_job_and_ends(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=30).worker("--processes", "2", "--concurrency", "1") as worker:
        pids = started(worker, 2)
        guest = meeting.guest()
        worker.kill()
        eventually(lambda: worker.output.count(" stopped ") == 1, "the idle child goes on", 5)
        behind = Job.objects.enqueue("test.echo")
        guest.let_go("finished")
        eventually(lambda: all(is_gone(pid) for pid in pids), "a child outlived its supervisor", 10)

    assert worker.output.count("stopped (its supervisor vanished)") == 2
    job.refresh_from_db()
    behind.refresh_from_db()
    assert (job.status, job.result) == (JobStatus.SUCCEEDED, "finished")
    assert behind.status == JobStatus.PENDING


def test_a_child_whose_supervisor_was_killed_hands_back_what_outlasts_the_grace(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=0.2).worker("--processes", "2", "--concurrency", "1") as worker:
        pids = started(worker, 2)
        meeting.guest()
        worker.kill()
        eventually(
            lambda: all(is_gone(pid) for pid in pids), "a child goes on", 0.2 + SLACK_SECONDS
        )

    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
