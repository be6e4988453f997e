"""Scheduled jobs become ready on time, whatever the workers do."""

from datetime import timedelta

import pytest

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, WorkerMode
from tests.managers.rows import Aside, now
from tests.processes import eventually

IN_TIME = timedelta(milliseconds=250)


@pytest.fixture(autouse=True)
def _lazy(jobqueue):
    jobqueue(POLL_INTERVAL=60)


def lateness(*jobs):
    """Wait until all jobs have started; return how late each did, the latest last."""
    ids = [job.pk for job in jobs]
    found = Job.objects.filter(pk__in=ids, started_at__isnull=False)
    eventually(lambda: found.count() == len(ids), "a scheduled job did not start")
    due = {job.pk: job.ready_at for job in jobs}
    return sorted(job.started_at - due[job.pk] for job in found)


def percentile_95(values):
    return values[int(len(values) * 0.95) - 1]


def spread(count=40, step=0.04, first=0.3):
    return [JobRequest("test.echo", delay=first + step * n) for n in range(count)]


def test_an_idle_worker_starts_them_on_time(pools):
    pools(2).start()
    jobs = Job.objects.enqueue_many(spread())

    late = lateness(*jobs)

    assert percentile_95(late) <= IN_TIME
    assert late[0] >= timedelta(0)


def test_a_worker_that_knew_them_from_its_start_does_too(pools):
    jobs = Job.objects.enqueue_many(spread(first=0.6))
    pools(2).start()

    assert percentile_95(lateness(*jobs)) <= IN_TIME


def test_they_are_ready_on_time_while_every_slot_is_busy(pools, meeting):
    """Another worker's slot could take them at once."""
    pool = pools(1)
    for _ in range(2):
        Job.objects.enqueue("test.meet", meeting.payload)
    pool.start()
    guest = meeting.guest()
    jobs = Job.objects.enqueue_many(spread(count=10, step=0.05))
    late = []

    def watch():
        for job in jobs:
            due = Job.objects.filter(pk=job.pk, scheduled_for=None)
            eventually(due.exists, "a busy worker does not promote", 10)
            late.append(now() - job.ready_at)

    Aside(watch).answer()

    assert percentile_95(sorted(late)) <= IN_TIME
    assert set(Job.objects.filter(type="test.echo").values_list("status", "attempts")) == {
        (JobStatus.PENDING, 0)
    }
    guest.let_go()
    meeting.guest().let_go()


def test_a_busy_worker_takes_them_by_their_place_in_the_queue(pools):
    """Promoted in time, they wait like any other job, and no longer."""
    pools(2).start()
    for _ in range(200):
        Job.objects.enqueue("test.echo")
    urgent = Job.objects.enqueue("test.echo", delay=0.2, priority=-5)
    for _ in range(400):
        Job.objects.enqueue("test.echo")

    eventually(lambda: not Job.objects.active().exists(), "not every job ran", 60)
    started_at = Job.objects.get(pk=urgent.pk).started_at
    assert Job.objects.filter(started_at__gt=started_at).count() > 100


@pytest.mark.parametrize("mode", WorkerMode)
def test_a_worker_promotes_in_every_mode(pools, mode):
    pools(1, mode=mode).start()
    job = Job.objects.enqueue("test.none", delay=0.2)

    eventually(
        lambda: Job.objects.filter(pk=job.pk, scheduled_for=None).exists(), "it is not promoted"
    )


def test_a_job_due_before_the_one_that_is_waited_for_is_not_late(pools):
    pools(1).start()
    later = Job.objects.enqueue("test.echo", delay=30)
    sooner = Job.objects.enqueue("test.echo", delay=0.3)

    assert lateness(sooner)[-1] <= IN_TIME
    assert Job.objects.get(pk=later.pk).scheduled_for is not None


def test_a_retry_comes_on_time(pools, jobqueue, handler):
    jobqueue(POLL_INTERVAL=60, RETRY_BASE=0.4, RETRY_MAX=0.4)
    starts = []

    @handler(max_attempts=3)
    def stumble(job):
        starts.append(now())
        if job.attempts < 3:
            raise ValueError("not yet")

    job = Job.objects.enqueue("stumble")
    pools(1).start()
    eventually(lambda: len(starts) == 3, "it was not tried again")

    waits = [starts[1] - starts[0], starts[2] - starts[1]]
    assert all(timedelta(seconds=0.2) <= wait <= timedelta(seconds=0.4) + IN_TIME for wait in waits)
    assert Job.objects.get(pk=job.pk).attempts == 3
