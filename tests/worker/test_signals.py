"""Real worker processes, told to stop."""

import signal
import subprocess
from datetime import timedelta

import pytest

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.marks import on_postgresql
from tests.processes import eventually

pytestmark = pytest.mark.usefixtures("transactional_db")

FORWARDED_SECONDS = 1.0
SLACK_SECONDS = 5
"""The contract: gone at the latest this long after the grace."""


def succeeded(job):
    return Job.objects.filter(pk=job.pk, status=JobStatus.SUCCEEDED).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_ends_at_once_however_long_it_would_sleep(site, number):
    job = Job.objects.enqueue("test.echo")
    with site(POLL_INTERVAL=60).worker() as worker:
        eventually(lambda: succeeded(job), "the worker did not run the job")
        worker.send(number)

        assert worker.exit_code(3) == 0
    assert worker.last_line.endswith(
        f"stopped (received {signal.Signals(number).name}): 1 succeeded."
    )
    assert worker.errors == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("job_type", ["test.meet", "test.meet-async"])
def test_a_running_job_is_finished_first(site, meeting, number, job_type):
    job = Job.objects.enqueue(job_type, meeting.payload)
    waiting = Job.objects.enqueue(job_type, meeting.payload, priority=1)
    with site().worker("--concurrency", "1") as worker:
        guest = meeting.guest()
        worker.send(number)
        guest.let_go("finished")

        assert worker.exit_code() == 0
    job.refresh_from_db()
    waiting.refresh_from_db()
    assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "finished", 1)
    assert (waiting.status, waiting.attempts) == (JobStatus.PENDING, 0)
    assert not job.attempt_history.exists()


@pytest.mark.parametrize("job_type", ["test.meet", "test.meet-async"])
def test_a_job_that_outlasts_the_grace_is_handed_back_and_runs_elsewhere(site, meeting, job_type):
    job = Job.objects.enqueue(job_type, meeting.payload)
    with site(SHUTDOWN_GRACE=0.2).worker() as worker:
        meeting.guest()
        worker.terminate()

        assert worker.exit_code(0.2 + SLACK_SECONDS) == 0
    job.refresh_from_db()
    assert (job.status, job.attempts, job.claim_token) == (JobStatus.PENDING, 0, None)
    attempt = job.attempt_history.get()
    assert (attempt.outcome, attempt.number) == (SettleOutcome.RELEASED, 1)
    assert f":{worker.pid}:" in attempt.worker
    assert worker.last_line.endswith("(received SIGTERM): 1 handed back.")

    with site().worker("--drain") as second:
        meeting.guest().let_go("second")
        assert second.exit_code() == 0
    job.refresh_from_db()
    assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "second", 1)


def test_a_second_signal_hands_back_at_once(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=600).worker() as worker:
        meeting.guest()
        worker.terminate()
        worker.send(signal.SIGINT)

        assert worker.exit_code(SLACK_SECONDS) == 0
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_the_same_signal_within_a_second_was_forwarded_and_counts_once(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=600).worker() as worker:
        guest = meeting.guest()
        worker.terminate()
        worker.terminate()
        # Had it counted twice, the job would now be handed back, and its worker gone.
        with pytest.raises(AssertionError, match="still runs"):
            worker.exit_code(1.5)
        guest.let_go("in peace")

        assert worker.exit_code() == 0
    job.refresh_from_db()
    assert (job.status, job.result) == (JobStatus.SUCCEEDED, "in peace")


def test_the_same_signal_later_is_a_second_one(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=600).worker() as worker:
        meeting.guest()
        worker.terminate()
        with pytest.raises(AssertionError, match="still runs"):
            worker.exit_code(FORWARDED_SECONDS + 0.3)
        worker.terminate()

        assert worker.exit_code(SLACK_SECONDS) == 0
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


@pytest.mark.parametrize("options", [["--drain"], ["--max-jobs", "1"]])
def test_a_signal_also_stops_a_worker_that_waits_for_its_last_job(site, meeting, options):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(SHUTDOWN_GRACE=0.2).worker(*options) as worker:
        meeting.guest()
        worker.terminate()

        assert worker.exit_code(0.2 + SLACK_SECONDS) == 0
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_threads_that_handlers_left_do_not_hold_the_process(site):
    job = Job.objects.enqueue("test.leave-a-thread")
    with site().worker() as worker:
        eventually(lambda: succeeded(job), "the job did not run")
        worker.terminate()

        assert worker.exit_code(3) == 0


def test_a_drained_worker_ends_although_a_handler_left_a_thread(site):
    Job.objects.enqueue("test.leave-a-thread")

    done = site().manage("run_jobworker", "--drain")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_that_cannot_print_any_more_ends_all_the_same(site):
    """Whoever read its output is gone, and a handler left a thread that never ends."""
    job = Job.objects.enqueue("test.leave-a-thread")
    project = site()
    with subprocess.Popen(
        project.command(["run_jobworker"], "-m django"),
        cwd=project.folder,
        env=project.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            eventually(lambda: succeeded(job), "the job did not run")
            process.stdout.close()
            process.terminate()
            eventually(lambda: process.poll() is not None, "the worker still runs", SLACK_SECONDS)
        finally:
            process.kill()


def test_a_killed_worker_leaves_a_running_row_with_its_lease(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site().worker() as worker:
        meeting.guest()
        worker.kill()

    job.refresh_from_db()
    assert (job.status, job.attempts, job.executor) == (JobStatus.RUNNING, 1, "server")
    assert job.claim_token is not None
    assert job.lease_seconds == 90
    assert job.lease_expires_at == job.started_at + timedelta(seconds=90)
    assert f":{worker.pid}:" in job.worker
    assert not job.attempt_history.exists()


@on_postgresql
def test_a_killed_worker_holds_no_lock(site, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site().worker() as worker:
        meeting.guest()
        worker.kill()

    assert Job.objects.release([job_claim(job)])


def job_claim(job):
    job.refresh_from_db()
    return job.claim
