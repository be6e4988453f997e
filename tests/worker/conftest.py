import os
import queue
import threading
import time

import pytest

from django_jobqueue import job_handler, registry
from django_jobqueue.models import Job
from django_jobqueue.worker import Pool
from django_jobqueue.worker.pool import PoolEvent

SECONDS = 40


@pytest.fixture(autouse=True)
def _quick(jobqueue):
    """Retries come at once, and idle slots look often."""
    jobqueue(POLL_INTERVAL=0.05, RETRY_BASE=0.01, RETRY_MAX=0.02)


@pytest.fixture
def handler():
    """Register functions as handlers for one test: `@handler` or `@handler(max_attempts=1)`.

    The type is the function's name.
    """
    before = registry.handlers()

    def register(function=None, *, name=None, **options):
        if function is None:
            return lambda found: register(found, name=name, **options)
        return job_handler(name or function.__name__, **options)(function)

    yield register
    registry._handlers.clear()
    registry._handlers.update(before)


@pytest.fixture
def unregister():
    """Take a type out of the registry for the rest of one test."""
    taken = {}

    def take(job_type):
        taken[job_type] = registry._handlers.pop(job_type)

    yield take
    registry._handlers.update(taken)


@pytest.fixture
def pools(transactional_db, meeting):
    """Make pools. After the test each is stopped, and every thread of it has ended."""
    made = []
    before = set(threading.enumerate())

    def make(concurrency=1, **options):
        made.append(Pool(concurrency, **options))
        return made[-1]

    yield make
    meeting.close()
    for pool in made:
        pool.stop(grace=20)
    # Threads of asyncio's and asgiref's executors end when somebody needs them to.
    left = [thread for thread in set(threading.enumerate()) - before if is_ours(thread)]
    for thread in left:
        thread.join(SECONDS)
    assert [thread.name for thread in left if thread.is_alive()] == []


def is_ours(thread):
    return type(thread).__module__.startswith("django_jobqueue")


@pytest.fixture
def drain(pools):
    """Run a pool until nothing is left to do, and return it."""

    def run(concurrency=1, **options):
        pool = pools(concurrency, drain=True, **options)
        pool.start()
        wait_for(pool, PoolEvent.DRAINED)
        pool.stop(grace=20)
        return pool

    return run


def wait_for(pool, event, seconds=SECONDS):
    """Wait until the pool says so."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            said = pool.inbox.get(timeout=left)
        except queue.Empty:
            break
        if said is event:
            return
    raise AssertionError(f"The pool did not say {event} within {seconds} s.")


@pytest.fixture
def run_one(drain):
    """Enqueue one job of a registered type, run it to its end, and return its row."""

    def run(job_type, payload=None, **options):
        job = Job.objects.enqueue(job_type, payload, **options)
        drain()
        job.refresh_from_db()
        return job

    return run


@pytest.fixture
def notebook(tmp_path):
    """A file that `test.note` writes to: `notebook.payload`, `notebook.ids()`."""
    return Notebook(tmp_path / "notes")


class Notebook:
    def __init__(self, path):
        self.path = path
        self.payload = {"file": os.fspath(path)}
        path.touch()

    def lines(self):
        return [line.split() for line in self.path.read_text().splitlines()]

    def ids(self):
        return [job_id for job_id, _ in self.lines()]

    def pids(self):
        return {pid for _, pid in self.lines()}
