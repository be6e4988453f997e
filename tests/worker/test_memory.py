"""A process that grows too far ends for a restart; one that starts too large works on."""

import logging
import resource
from pathlib import Path

import pytest

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from django_jobqueue.worker import memory
from django_jobqueue.worker.memory import CHECK_SECONDS, MemoryLimit, resident_mib
from django_jobqueue.worker.pool import PoolEvent
from tests.processes import eventually
from tests.worker.conftest import wait_for

GROWTH_MIB = 200
MIB = 1024 * 1024


@pytest.fixture
def limit():
    """Make limits relative to what this process uses; `overgrown` counts."""

    class Made:
        overgrown = 0

        def __call__(self, above):
            return MemoryLimit(round(resident_mib() + above), self.grow)

        def grow(self):
            self.overgrown += 1

    return Made()


def test_the_resident_memory_grows_with_what_is_used():
    before = resident_mib()
    block = bytearray(GROWTH_MIB * MIB)
    block[::4096] = b"x" * len(block[::4096])

    assert GROWTH_MIB * 0.9 < resident_mib() - before < GROWTH_MIB * 1.5


@pytest.mark.parametrize("content", [None, "", "1", "no numbers"])
def test_without_proc_it_is_the_most_it_ever_was(monkeypatch, tmp_path, content):
    statm = tmp_path / "statm"
    if content is not None:
        statm.write_text(content)
    monkeypatch.setattr(memory, "STATM", statm)

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resident_mib() == pytest.approx(peak / 1024, rel=0.05)
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert resident_mib() == pytest.approx(peak / MIB, rel=0.05)


def test_a_small_process_is_looked_at_again(limit):
    look = limit(GROWTH_MIB)

    assert look() == look() == CHECK_SECONDS
    assert limit.overgrown == 0


def test_one_that_grows_beyond_the_limit_says_so_once(limit, caplog):
    caplog.set_level(logging.INFO, "django_jobqueue.worker.memory")
    look = limit(GROWTH_MIB / 2)
    look()
    block = bytearray(b"x") * (GROWTH_MIB * MIB)

    assert look() == float("inf")
    assert limit.overgrown == 1
    assert "limit" in caplog.text
    del block


def test_one_above_the_limit_from_the_start_warns_once_and_is_left_alone(limit, caplog):
    look = limit(-1)

    assert look() == float("inf")
    assert limit.overgrown == 0
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "above its limit" in record.getMessage()


def test_the_pool_says_so_and_finishes_what_runs(pools, handler, meeting):
    kept = []

    @handler
    def grow(job):
        kept.append(bytearray(b"x") * (GROWTH_MIB * MIB))

    running = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(2, max_memory=round(resident_mib() + GROWTH_MIB / 2))
    pool.start()
    guest = meeting.guest()
    [look] = [chore for chore in pool._housekeeping._due if isinstance(chore, MemoryLimit)]
    Job.objects.enqueue("grow")
    eventually(lambda: kept, "the job does not run")
    pool._housekeeping.hurry(look)
    wait_for(pool, PoolEvent.OVERGROWN, 20)
    pool.finish()
    left = Job.objects.enqueue("test.echo")
    guest.let_go("done")
    wait_for(pool, PoolEvent.ENDED)

    assert pool.stop() == 0
    running.refresh_from_db()
    left.refresh_from_db()
    assert (running.status, running.result) == (JobStatus.SUCCEEDED, "done")
    assert (left.status, left.attempts) == (JobStatus.PENDING, 0)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit needs /proc")
def test_a_worker_that_starts_too_large_warns_once_and_works_on(site):
    with site().worker("--max-memory", "1") as worker:
        worker.wait_until_it_says("the limit is ignored")
        job = Job.objects.enqueue("test.echo")
        eventually(
            lambda: Job.objects.filter(pk=job.pk, status=JobStatus.SUCCEEDED).exists(),
            "the worker does not work",
        )
        worker.terminate()
        assert worker.exit_code() == 0

    assert worker.errors.count("the limit is ignored") == 1
