"""What a worker's threads do not do: wake for every short job, log queries, ask one by one."""

import threading
from collections import Counter
from contextlib import closing

import pytest
from django.db import connections, transaction

from django_jobqueue import JobRequest
from django_jobqueue.managers import JobManager
from django_jobqueue.models import Job
from django_jobqueue.worker.queue_connection import queue_connection
from django_jobqueue.worker.renewer import Renewer
from django_jobqueue.worker.watchdog import Watchdog
from tests.claims import LEASE, claim_of, claimed, success, tokens
from tests.marks import on_postgresql
from tests.processes import eventually

pytestmark = pytest.mark.usefixtures("transactional_db")

JOBS = 200


@pytest.fixture
def counted(monkeypatch):
    """Count the calls of a method, in whatever thread: `counted(Renewer, "step")`."""
    counts, lock = Counter(), threading.Lock()

    def count(owner, name):
        method = getattr(owner, name)

        def counting(self, *args, **kwargs):
            with lock:
                counts[name, owner] += 1
            return method(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, counting)
        return lambda: counts[name, owner]

    return count


@pytest.mark.parametrize("owner", [Renewer, Watchdog])
def test_short_jobs_wake_neither_the_renewer_nor_the_watchdog(pools, counted, jobqueue, owner):
    jobqueue(POLL_INTERVAL=60, JOB_TIMEOUT=300)
    steps = counted(owner, "step")
    Job.objects.enqueue_many(JobRequest("test.echo") for _ in range(JOBS))
    pools(4).start()
    eventually(lambda: Job.objects.terminal().count() == JOBS, "the jobs did not run")

    assert 1 <= steps() <= 8


def test_jobs_of_several_ceilings_wake_them_a_few_times_only(pools, counted, jobqueue, handler):
    jobqueue(POLL_INTERVAL=60)
    steps = counted(Watchdog, "step"), counted(Renewer, "step")
    for seconds in (300, 100, 600, 200):
        handler(lambda job: None, name=f"test.within-{seconds}", max_runtime=seconds)
    Job.objects.enqueue_many(
        JobRequest(f"test.within-{seconds}")
        for _ in range(JOBS // 4)
        for seconds in (300, 100, 600, 200)
    )
    pools(4).start()
    eventually(lambda: Job.objects.terminal().count() == JOBS, "the jobs did not run")

    assert max(count() for count in steps) <= 16


def test_idle_slots_poll_together(pools, counted, jobqueue, handler):
    """Though their last jobs ended at different times."""
    slots, interval, intervals = 16, 0.4, 6
    jobqueue(POLL_INTERVAL=interval, NOTIFY=False)
    pause = threading.Event()
    handler(lambda job: pause.wait(job.payload["seconds"]), name="test.stay")
    Job.objects.enqueue_many(
        JobRequest("test.stay", {"seconds": 0.1 + interval * number / slots})
        for number in range(slots)
    )
    claims = counted(JobManager, "settle_and_claim")
    pool = pools(slots)
    pool.start()
    eventually(lambda: Job.objects.terminal().count() == slots, "the jobs did not run")
    pause.wait(2 * interval)
    before = claims()
    pause.wait(intervals * interval)

    # Some slots are a moment later than the first, and share a second statement.
    assert intervals - 2 <= claims() - before <= 3 * intervals


@pytest.fixture
def with_debug(settings):
    settings.DEBUG = True
    with closing(queue_connection("default")) as wrapper:
        wrapper.connect()
        own, connections["default"] = connections["default"], wrapper
        try:
            yield wrapper
        finally:
            connections["default"] = own


@on_postgresql
def test_a_queue_connection_logs_no_query_in_debug_mode(with_debug):
    Job.objects.enqueue_many(JobRequest("test.echo") for _ in range(3))
    (held,) = claimed()
    Job.objects.settle_and_claim([success(held)], tokens(), {"test.echo": LEASE})
    (other,) = claimed()
    Job.objects.renew([claim_of(other)])
    Job.objects.release([claim_of(other)])
    assert Job.objects.ready().exists()

    assert with_debug.queries_logged
    assert list(with_debug.queries_log) == []


@on_postgresql
def test_a_queue_connection_logs_no_transaction_in_debug_mode(with_debug):
    for _ in range(3):
        with transaction.atomic():
            assert not Job.objects.ready().exists()

    assert list(with_debug.queries_log) == []
