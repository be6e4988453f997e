"""A pool's life: started once, stopped within its time, usable without the command."""

import os
import threading
import time

import pytest

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import JobStatus, SettleOutcome
from django_jobqueue.worker import Pool
from django_jobqueue.worker.pool import PoolEvent
from tests.processes import eventually
from tests.worker.conftest import is_ours, wait_for


def threads_of_pools():
    return [thread for thread in threading.enumerate() if is_ours(thread)]


def test_a_second_start_changes_nothing(pools):
    pool = pools(2)
    pool.start()
    threads = set(threads_of_pools())

    pool.start()

    assert set(threads_of_pools()) == threads


def test_a_second_stop_changes_nothing(pools, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools()
    pool.start()
    meeting.guest()

    assert pool.stop(grace=0) == 1
    assert pool.stop(grace=0) == 0
    job.refresh_from_db()
    assert job.status == JobStatus.PENDING


def test_a_pool_that_never_started_stops(pools):
    assert pools().stop() == 0


def test_a_stopped_pool_does_not_start_again(pools):
    Job.objects.enqueue("test.echo")
    pool = pools()
    pool.stop()
    pool.start()

    assert threads_of_pools() == []
    assert Job.objects.ready().count() == 1


def test_a_stop_waits_for_what_finishes_in_time(pools, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools()
    pool.start()
    guest = meeting.guest()
    released = []
    stopping = threading.Thread(target=lambda: released.append(pool.stop(grace=30)))
    stopping.start()

    guest.let_go("in time")
    stopping.join(20)

    assert released == [0]
    job.refresh_from_db()
    assert (job.status, job.result) == (JobStatus.SUCCEEDED, "in time")


def test_a_job_that_does_not_finish_is_handed_back_uncharged(pools, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools()
    pool.start()
    guest = meeting.guest()

    assert pool.stop(grace=0) == 1

    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
    assert (job.claim_token, job.lease_expires_at, job.scheduled_for) == (None, None, None)
    attempt = JobAttempt.objects.get(job=job)
    assert (attempt.outcome, attempt.number) == (SettleOutcome.RELEASED, 1)
    assert attempt.worker == f"{pool.name}:1"
    guest.let_go("too late")
    eventually(lambda: not threads_of_pools(), "the abandoned slot did not end")
    job.refresh_from_db()
    assert (job.status, job.result) == (JobStatus.PENDING, None)


def test_a_job_handed_back_runs_at_once_in_another_pool(pools, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    first, second = pools(), pools()
    first.start()
    meeting.guest()
    first.stop(grace=0)
    second.start()

    meeting.guest().let_go("second")

    eventually(lambda: Job.objects.terminal().exists(), "the second pool did not settle it")
    job.refresh_from_db()
    assert (job.result, job.attempts) == ("second", 1)


def test_nothing_is_claimed_after_the_stop(pools, meeting):
    running, waiting = (Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2))
    pool = pools()
    pool.start()
    guest = meeting.guest()
    pool.finish()
    guest.let_go()
    wait_for(pool, PoolEvent.ENDED)
    pool.stop()

    running.refresh_from_db()
    waiting.refresh_from_db()
    assert running.status == JobStatus.SUCCEEDED
    assert (waiting.status, waiting.attempts) == (JobStatus.PENDING, 0)


@pytest.mark.parametrize("concurrency", [0, -3])
def test_a_pool_without_slots_warns_runs_nothing_and_stops(pools, concurrency):
    job = Job.objects.enqueue("test.echo")
    pool = pools(concurrency)

    with pytest.warns(RuntimeWarning, match="has 0 slots and runs no jobs"):
        pool.start()
    pool.finish()
    wait_for(pool, PoolEvent.ENDED)

    assert pool.stop() == 0
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_a_pool_without_slots_promotes_all_the_same(pools):
    job = Job.objects.enqueue("test.echo", delay=0.05)
    with pytest.warns(RuntimeWarning, match="runs no jobs"):
        pools(0).start()

    eventually(lambda: Job.objects.ready().filter(pk=job.pk).exists(), "nobody promoted the job")


def test_the_setting_gives_the_number_of_slots(pools, jobqueue, meeting):
    jobqueue(WORKER_CONCURRENCY=3)
    for _ in range(4):
        Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(None)
    pool.start()
    for _ in range(3):
        meeting.guest()

    assert pool.concurrency == 3
    assert Job.objects.running().count() == 3


def test_an_idle_pool_stops_at_once_however_long_it_would_sleep(pools, jobqueue):
    jobqueue(POLL_INTERVAL=600)
    pool = pools(4)
    pool.start()
    eventually(lambda: all(slot.idle for slot in pool._slots), "the slots are not idle")
    before = time.monotonic()

    pool.stop(grace=60)

    assert time.monotonic() - before < 3


def test_every_thread_has_ended_when_an_undisturbed_stop_returns(pools):
    Job.objects.enqueue("test.echo")
    Job.objects.enqueue("test.async")
    pool = pools(2)
    pool.start()
    eventually(lambda: Job.objects.terminal().count() == 2, "the jobs did not run")

    pool.stop(grace=20)

    assert threads_of_pools() == []


def test_the_pool_counts_what_became_of_its_attempts(drain):
    Job.objects.enqueue("test.echo")
    Job.objects.enqueue("test.fail")

    pool = drain()

    assert pool.outcomes == {
        SettleOutcome.SUCCEEDED: 1,
        SettleOutcome.RETRY_SCHEDULED: 1,
        SettleOutcome.FAILED: 1,
    }


def test_the_pool_is_named_after_its_process(pools):
    assert pools().name.endswith(f":{os.getpid()}")


def test_the_pool_uses_the_given_alias(pools):
    pool = pools(using="default")

    assert isinstance(pool, Pool)
    assert pool.manager.write_alias == "default"


def test_each_settled_attempt_gets_one_log_line(drain, caplog):
    job = Job.objects.enqueue("test.fail")
    with caplog.at_level("INFO", "django_jobqueue.worker"):
        drain()

    told = [record.getMessage() for record in caplog.records if str(job.pk) in record.getMessage()]
    first, (failed, *traceback) = told[0], told[1].splitlines()
    assert len(told) == 2
    assert first == f"Job {job.pk} (test.fail) attempt 1: retry-scheduled (ValueError: as asked)"
    assert failed == f"Job {job.pk} (test.fail) attempt 2: failed (ValueError: as asked)"
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: as asked"
