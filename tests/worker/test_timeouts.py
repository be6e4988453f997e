"""An attempt over its time ends as a failure, and costs nobody else anything."""

import asyncio
import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from django_jobqueue.worker.pool import PoolEvent
from tests.marks import on_postgresql
from tests.processes import counted, eventually
from tests.testapp.meeting import meet
from tests.worker.conftest import wait_for

SHORT = timedelta(seconds=0.2)
SECONDS = 30

ENDS = {
    "sync": lambda gate: lambda job: gate.wait(SECONDS),
    "async": lambda gate: wait_for_ever,
}


async def wait_for_ever(job):
    await asyncio.Event().wait()


@pytest.fixture
def gate(pools):
    """What handlers that take too long wait for; it opens before the pools are stopped."""
    opened = threading.Event()
    yield opened
    opened.set()


def ended(*jobs):
    ids = [job.pk for job in jobs]
    return lambda: Job.objects.terminal().filter(pk__in=ids).count() == len(ids)


def columns(job):
    return Job.objects.filter(pk=job.pk).values().get(), list(job.attempt_history.values())


def all_have_left(pool):
    eventually(lambda: pool.abandoned == 0, "abandoned handlers run on")


class TestTheAttempt:
    @pytest.mark.parametrize("kind", ENDS)
    def test_fails_with_the_reason(self, pools, handler, gate, kind):
        handler(name="slow", max_runtime=SHORT, max_attempts=1)(ENDS[kind](gate))
        job = Job.objects.enqueue("slow")
        pool = pools()
        pool.start()
        eventually(ended(job), "the job was not ended")

        job.refresh_from_db()
        assert job.status == JobStatus.FAILED
        assert job.last_error.startswith("JobTimeoutError: ")
        assert "0.2" in job.last_error
        attempt = job.attempt_history.get()
        assert attempt.exception_class == "django_jobqueue.exceptions.JobTimeoutError"
        assert job.rate_limit_hits == 0
        counted(pool, {SettleOutcome.FAILED: 1})

    @pytest.mark.parametrize("kind", ENDS)
    def test_is_repeated_while_attempts_are_left(self, pools, handler, gate, kind):
        slow = ENDS[kind](gate)

        @handler(max_runtime=SHORT, max_attempts=2)
        def once_slow(job):
            return slow(job) if job.attempts == 1 else "in time"

        job = Job.objects.enqueue("once_slow")
        pools().start()
        eventually(ended(job), "the job was not ended")

        job.refresh_from_db()
        assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "in time", 2)
        assert job.last_error.startswith("JobTimeoutError: ")
        assert job.attempt_history.get().outcome == SettleOutcome.RETRY_SCHEDULED

    def test_has_the_ceiling_of_the_setting_without_one_of_its_own(
        self, pools, handler, gate, jobqueue
    ):
        jobqueue(JOB_TIMEOUT=0.2, POLL_INTERVAL=0.05, MAX_ATTEMPTS=1)
        handler(name="slow")(ENDS["sync"](gate))
        job = Job.objects.enqueue("slow")
        pools().start()

        eventually(ended(job), "the job was not ended")

    def test_has_no_ceiling_when_its_own_is_zero(self, pools, handler, jobqueue, meeting):
        jobqueue(JOB_TIMEOUT=0.1, POLL_INTERVAL=0.05)
        handler(name="patient", max_runtime=0)(meet)
        handler(name="slow", max_runtime=0.3, max_attempts=1)(meet)
        job = Job.objects.enqueue("patient", meeting.payload)
        pools(2).start()
        guest = meeting.guest()
        later = Job.objects.enqueue("slow", meeting.payload)
        meeting.guest()

        eventually(ended(later), "the ceiling of the other job did not count")

        guest.let_go("in its own time")
        eventually(ended(job), "the job was not ended")
        job.refresh_from_db()
        assert (job.status, job.result) == (JobStatus.SUCCEEDED, "in its own time")

    def test_is_timed_from_the_start_of_its_handler(self, pools, handler):
        """The wait for a provider that opens soon does not count."""

        @handler(max_runtime=0.6, max_attempts=1, provider="acme")
        def quick(job):
            return "in time"

        job = Job.objects.enqueue("quick")
        pool = pools()

        class Closing(type(Job.objects)):
            def settle_and_claim(self, *args, **options):
                outcomes, jobs = super().settle_and_claim(*args, **options)
                if jobs:
                    pool.throttle.trip("acme", timedelta(seconds=0.9))
                return outcomes, jobs

        manager = Closing()
        manager.model = Job
        pool._exchange._manager = manager
        pool.start()
        eventually(ended(job), "the job was not ended")

        job.refresh_from_db()
        assert (job.status, job.result) == (JobStatus.SUCCEEDED, "in time")
        assert job.finished_at - job.started_at >= timedelta(seconds=0.8)


class TestTheSlots:
    @pytest.mark.parametrize("kind", ENDS)
    def test_are_as_many_after_fifty_timeouts(self, pools, handler, gate, meeting, kind):
        handler(name="slow", max_runtime=0.02, max_attempts=1)(ENDS[kind](gate))
        jobs = [Job.objects.enqueue("slow") for _ in range(50)]
        pool = pools(3)
        pool.start()
        eventually(ended(*jobs), "the timeouts were not settled")
        counted(pool, {SettleOutcome.FAILED: 50})
        if kind == "sync":
            assert pool.abandoned == 50

        for _ in range(5):
            Job.objects.enqueue("test.meet", meeting.payload)
        guests = [meeting.guest() for _ in range(3)]
        assert pool.busy == 3
        assert Job.objects.running().count() == 3
        assert meeting.nobody_waits()
        assert len(set(Job.objects.running().values_list("worker", flat=True))) == 3
        assert pool.died() == []

        for guest in guests:
            guest.let_go()
        for _ in range(2):
            meeting.guest().let_go()
        gate.set()
        all_have_left(pool)

    def test_are_free_at_once(self, pools, handler, gate):
        handler(name="slow", max_runtime=SHORT, max_attempts=1)(ENDS["sync"](gate))
        Job.objects.enqueue("slow", priority=-1)
        job = Job.objects.enqueue("test.echo")
        pools(1).start()

        eventually(ended(job), "the only slot stays with the job that is over its time", 5)


class TestWorkLeftBehind:
    @pytest.mark.parametrize("max_attempts", [1, 2])
    def test_changes_no_row_when_it_ends(self, pools, handler, gate, max_attempts):
        told = []

        @handler(max_runtime=SHORT, max_attempts=max_attempts)
        def slow(job):
            if job.attempts > 1:
                return "second"
            gate.wait(SECONDS)
            told.append(job.claim_lost)
            return "late"

        job = Job.objects.enqueue("slow")
        pool = pools()
        pool.start()
        eventually(ended(job), "the job was not ended")
        before = columns(job)
        assert pool.abandoned == 1

        gate.set()
        all_have_left(pool)
        other = Job.objects.enqueue("test.echo")
        eventually(ended(other), "the pool stands still")

        assert columns(job) == before
        assert told == [True]
        assert pool.outcomes[SettleOutcome.CLAIM_LOST] == 0

    def test_that_raises_in_the_end_changes_nothing_either(self, pools, handler, gate):
        @handler(max_runtime=SHORT, max_attempts=1)
        def slow(job):
            gate.wait(SECONDS)
            raise SystemExit(3)

        job = Job.objects.enqueue("slow")
        pool = pools()
        pool.start()
        eventually(ended(job), "the job was not ended")
        before = columns(job)

        gate.set()
        all_have_left(pool)

        assert columns(job) == before
        assert pool.died() == []

    def test_does_not_hold_the_stop(self, pools, handler, gate):
        handler(name="slow", max_runtime=SHORT, max_attempts=1)(ENDS["sync"](gate))
        job = Job.objects.enqueue("slow")
        pool = pools()
        pool.start()
        eventually(ended(job), "the job was not ended")

        assert pool.stop(grace=2) == 0

        assert pool.abandoned == 1

    @on_postgresql
    @pytest.mark.parametrize("is_async", [False, True])
    def test_has_its_statement_cancelled(self, pools, handler, is_async):
        broken_off = []

        def sleep(job):
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(60)")
            except DatabaseError as error:
                broken_off.append(error.__cause__.sqlstate)
                raise

        async def sleep_on_the_loop(job):
            await sync_to_async(sleep)(job)

        handler(name="sleep", max_runtime=SHORT, max_attempts=1)(
            sleep_on_the_loop if is_async else sleep
        )
        job = Job.objects.enqueue("sleep")
        pool = pools()
        pool.start()
        eventually(ended(job), "the job was not ended")
        all_have_left(pool)

        assert broken_off == ["57014"]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
                " AND query LIKE 'SELECT pg_sleep%' AND datname = current_database()"
            )
            assert cursor.fetchone() == (0,)


class TestOnTheEventLoop:
    """Each fault costs its own job only; the others on the loop succeed."""

    @pytest.fixture
    def beside(self, pools, handler):
        """Run two jobs that are on the loop while a third one misbehaves; return them."""
        both = threading.Event()
        first = []

        @handler
        async def neighbour(job):
            first.append(job)
            if len(first) <= 2:
                both.set() if len(first) == 2 else None
                await asyncio.sleep(0.5)
            return "neighbour"

        def start():
            jobs = [Job.objects.enqueue("neighbour", priority=-1) for _ in range(2)]
            pool = pools(3)
            pool.start()
            assert both.wait(SECONDS)
            return pool, jobs

        return start

    def check(self, bad, others):
        eventually(ended(bad, *others), "not every job ended", 20)
        for job in others:
            job.refresh_from_db()
            assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "neighbour", 1)
            outcomes = set(job.attempt_history.values_list("outcome", flat=True))
            assert outcomes <= {SettleOutcome.RELEASED}
        bad.refresh_from_db()
        assert bad.status == JobStatus.FAILED
        return bad.last_error.partition(":")[0]

    def test_a_handler_that_blocks_the_loop(self, handler, gate, beside):
        @handler(max_runtime=SHORT, max_attempts=1)
        async def block(job):
            gate.wait(SECONDS)

        pool, others = beside()
        bad = Job.objects.enqueue("block")

        assert self.check(bad, others) == "JobTimeoutError"
        before = columns(bad)
        assert pool.abandoned >= 1

        gate.set()
        all_have_left(pool)
        assert columns(bad) == before
        assert pool.died() == []

    def test_a_handler_that_swallows_its_cancel(self, handler, gate, beside):
        @handler(max_runtime=SHORT, max_attempts=1)
        async def deaf(job):
            while not gate.is_set():
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.02)

        pool, others = beside()
        bad = Job.objects.enqueue("deaf")

        assert self.check(bad, others) == "JobTimeoutError"
        assert pool.abandoned == 1
        more = Job.objects.enqueue("neighbour")
        eventually(ended(more), "the loop does not go on")

        gate.set()
        all_have_left(pool)

    def test_a_handler_stuck_in_a_sync_call(self, handler, gate, beside):
        @handler(max_runtime=SHORT, max_attempts=1)
        async def stuck(job):
            await sync_to_async(gate.wait)(SECONDS)

        pool, others = beside()
        bad = Job.objects.enqueue("stuck")

        assert self.check(bad, others) == "JobTimeoutError"
        assert pool.abandoned == 1
        assert others_can_query(handler)

        gate.set()
        all_have_left(pool)

    @pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
    def test_a_handler_that_ends_programs(self, handler, beside, error):
        @handler(max_attempts=1)
        async def leave(job):
            raise error

        pool, others = beside()
        bad = Job.objects.enqueue("leave")

        assert self.check(bad, others) == error.__name__
        assert pool.abandoned == 0
        assert pool.died() == []

    def test_a_handler_that_blocks_the_loop_within_its_time(self, handler, gate, beside):
        """The loop is given up all the same; the job itself still counts."""

        @handler(max_attempts=1)
        async def block(job):
            gate.wait(SECONDS)
            return "blocked"

        pool, others = beside()
        bad = Job.objects.enqueue("block")
        eventually(ended(*others), "the neighbours stand still", 20)

        gate.set()

        eventually(ended(bad), "the job was not settled")
        bad.refresh_from_db()
        assert (bad.status, bad.result) == (JobStatus.SUCCEEDED, "blocked")
        all_have_left(pool)


def others_can_query(handler):
    @handler(max_attempts=1)
    async def query(job):
        return (await Job.objects.aget(pk=job.pk)).attempts

    job = Job.objects.enqueue("query")
    eventually(ended(job), "no other job gets its sync call done")
    job.refresh_from_db()
    return job.result == 1


class TestTooMany:
    def test_the_pool_says_so_and_what_runs_is_finished(
        self, pools, handler, gate, jobqueue, meeting
    ):
        jobqueue(MAX_ABANDONED=2, POLL_INTERVAL=0.05)
        handler(name="slow", max_runtime=SHORT, max_attempts=1)(ENDS["sync"](gate))
        healthy = Job.objects.enqueue("test.meet", meeting.payload, priority=-1)
        jobs = [Job.objects.enqueue("slow") for _ in range(10)]
        pool = pools(2)
        pool.start()
        guest = meeting.guest()

        wait_for(pool, PoolEvent.ABANDONED)
        pool.finish()
        guest.let_go("done")
        wait_for(pool, PoolEvent.ENDED)

        healthy.refresh_from_db()
        assert (healthy.status, healthy.result) == (JobStatus.SUCCEEDED, "done")
        assert 2 < pool.abandoned <= 4
        left = Job.objects.ready().filter(pk__in=[job.pk for job in jobs])
        assert left.count() == 10 - pool.abandoned
        assert set(left.values_list("attempts", flat=True)) == {0}

    def test_a_worker_process_ends_for_a_restart(self, site, meeting):
        for _ in range(10):
            Job.objects.enqueue("test.meet", meeting.payload)
        lines = {"MAX_ABANDONED": 2, "JOB_TIMEOUT": 0.2, "MAX_ATTEMPTS": 1}
        with site(**lines).worker("--concurrency", "1") as worker:
            assert worker.exit_code() == 0

        assert worker.last_line.endswith(
            f"stopped ({PoolEvent.ABANDONED.value}): {Job.objects.terminal().count()} failed."
        )
        assert 3 <= Job.objects.terminal().count() <= 4
        assert not Job.objects.running().exists()
