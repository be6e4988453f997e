"""The row by which a worker process is seen."""

import os
import socket
from datetime import timedelta

import pytest

from django_jobqueue import __version__
from django_jobqueue.models import Job, WorkerProcess
from django_jobqueue.states import JobStatus, WorkerMode
from django_jobqueue.worker.presence import INTERVAL_SECONDS
from tests.factories import WorkerProcessFactory
from tests.managers.rows import now
from tests.processes import eventually


def row_of(pool):
    return WorkerProcess.objects.filter(pk=pool._presence.id).first()


def reported(pool):
    return eventually(lambda: row_of(pool), "the process does not report itself")


def report(pool):
    """Have the row written now, not in fifteen seconds."""
    before = reported(pool).seen_at
    pool._housekeeping.hurry(pool._presence)
    return eventually(
        lambda: WorkerProcess.objects.filter(pk=pool._presence.id, seen_at__gt=before).first(),
        "the row is not written again",
    )


def test_says_what_the_process_is(pools):
    pool = pools(3, queues=["a", "b"], types=["test.echo", "test.note"], mode=WorkerMode.SYSTEM)
    pool.start()
    row = reported(pool)

    assert row.host == socket.gethostname()[:150]
    assert (row.pid, row.version) == (os.getpid(), __version__)
    assert (row.mode, row.slots, row.busy) == ("system", 3, 0)
    assert (row.types, row.queues) == (["test.echo", "test.note"], ["a", "b"])
    assert row.started_at == row.seen_at
    assert abs(row.seen_at - now()) < timedelta(seconds=30)


def test_all_queues_are_none(pools):
    pool = pools()
    pool.start()

    assert reported(pool).queues is None


def test_is_written_again_with_what_is_true_now(pools, meeting, jobqueue):
    modes = {"now": "all"}
    jobqueue(POLL_INTERVAL=0.05, WORKER_MODE=lambda: modes["now"])
    pool = pools(2)
    pool.start()
    first = reported(pool)
    Job.objects.enqueue("test.meet", meeting.payload)
    guest = meeting.guest()

    second = report(pool)
    assert (second.busy, second.started_at) == (1, first.started_at)

    guest.let_go()
    eventually(lambda: pool.busy == 0, "the job does not end")
    modes["now"] = "off"
    third = report(pool)
    assert (third.busy, third.mode, third.types) == (0, "off", [])
    assert WorkerProcess.objects.count() == 1


def test_comes_every_fifteen_seconds(pools):
    pool = pools()
    pool.start()
    reported(pool)

    assert INTERVAL_SECONDS == 15
    assert pool._presence() == INTERVAL_SECONDS


def test_a_types_closed_gate_does_not_take_it_off_the_list(pools, handler):
    """The process knows it; it only waits."""
    handler(name="call", provider="acme")(lambda job: None)
    pool = pools()
    pool.throttle.trip("acme", timedelta(seconds=60))
    pool.start()

    assert "call" in reported(pool).types


def test_is_gone_after_a_clean_stop(pools):
    pool = pools()
    pool.start()
    reported(pool)

    pool.stop()

    assert row_of(pool) is None


def test_a_row_that_somebody_deleted_comes_back(pools):
    pool = pools()
    pool.start()
    reported(pool).delete()
    pool._housekeeping.hurry(pool._presence)

    reported(pool)


@pytest.mark.parametrize(("age", "stays"), [(timedelta(hours=23), True), (timedelta(25), False)])
def test_rows_of_processes_long_gone_are_removed(pools, age, stays):
    seen_at = now() - age
    gone = WorkerProcessFactory(started_at=seen_at)
    pool = pools()
    pool.start()
    reported(pool)
    report(pool)

    assert WorkerProcess.objects.filter(pk=gone.pk).exists() is stays


def test_a_job_needs_no_row(pools):
    """Nothing depends on it: here the table has nobody."""
    pool = pools()
    pool.start()
    reported(pool)
    WorkerProcess.objects.all().delete()
    job = Job.objects.enqueue("test.echo")

    eventually(
        lambda: Job.objects.filter(pk=job.pk, status=JobStatus.SUCCEEDED).exists(),
        "the job does not run",
    )


def test_a_killed_process_leaves_its_row_and_a_stopped_one_does_not(site):
    with site().worker() as killed, site().worker() as stopped:
        eventually(lambda: WorkerProcess.objects.count() == 2, "not every process reports itself")
        assert set(WorkerProcess.objects.values_list("pid", flat=True)) == {
            killed.pid,
            stopped.pid,
        }
        killed.kill()
        stopped.terminate()
        assert stopped.exit_code() == 0

    assert WorkerProcess.objects.get().pid == killed.pid
