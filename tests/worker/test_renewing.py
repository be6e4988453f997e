"""A claim holds as long as its worker renews it, and not a moment longer than its token."""

import logging
import signal
import threading
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection, transaction

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.managers.rows import Aside, another_connection
from tests.marks import on_postgresql
from tests.processes import counted, eventually
from tests.testapp.meeting import meet

LEASE_SECONDS = 0.6
SHORT = {"LEASE_CAP": LEASE_SECONDS, "POLL_INTERVAL": 0.05}
THRESHOLD = timedelta(hours=1)
AUDIT = ("status", "attempts", "claim_token", "started_at", "worker", "last_error", "result")


@pytest.fixture(autouse=True)
def _short(jobqueue):
    jobqueue(**SHORT, REAPER_ENABLED=False)


def audit(job):
    """What only the holder of the claim may change; the lease moves by itself."""
    return Job.objects.values(*AUDIT).get(pk=job.pk)


def lease_of(job):
    return Job.objects.values_list("lease_expires_at", flat=True).get(pk=job.pk)


def reap(job):
    """Reap the job as soon as its lease is over."""
    eventually(lambda: Job.objects.reap(THRESHOLD, 3, jobs=job), "the lease did not run out")


def renewed(job, times=1):
    """Wait until the lease of a running job was extended so often."""
    for _ in range(times):
        before = lease_of(job)
        eventually(lambda before=before: lease_of(job) > before, "the claim is not renewed")


def succeeded(*jobs):
    ids = [job.pk for job in jobs]
    found = Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED)
    return lambda: found.count() == len(ids)


def losses(caplog):
    return [r for r in caplog.records if r.name == "django_jobqueue.worker.renewer"]


class HeldUp(type(Job.objects)):
    """A manager that comes to renew only when it is let."""

    def __init__(self):
        super().__init__()
        self.model = Job
        self.free = threading.Event()

    def renew(self, claims):
        assert self.free.wait(30)
        return super().renew(claims)


@pytest.fixture
def stalled(pools):
    """Make a pool whose renewer stands still until `free` is set; it is set before the stop."""
    manager = HeldUp()

    def make(concurrency):
        pool = pools(concurrency)
        pool._renewer._manager = manager
        return pool, manager.free

    yield make
    manager.free.set()


class TestALostClaim:
    def test_a_stalled_process_changes_nothing_once_another_has_the_job(self, site, meeting, pools):
        job = Job.objects.enqueue("test.meet", meeting.payload)
        with site(LEASE_CAP=LEASE_SECONDS, REAPER_ENABLED=False).worker() as worker:
            late = meeting.guest()
            worker.halt()
            reap(job)
            pools().start()
            guest = meeting.guest()
            before = audit(job)
            assert before["attempts"] == 2

            worker.send(signal.SIGCONT)
            worker.wait_until_it_says(f"The claim of job {job.pk} (test.meet) is lost")
            assert audit(job) == before
            late.let_go("late")
            worker.wait_until_it_says(f"Job {job.pk} (test.meet) attempt 1: claim-lost")
            assert audit(job) == before

            guest.let_go("in time")
            eventually(succeeded(job), "the job was not settled")
            worker.terminate()
            assert worker.exit_code() == 0
        job.refresh_from_db()
        assert (job.result, job.attempts) == ("in time", 2)
        assert job.attempt_history.get().outcome == SettleOutcome.REAPED
        assert worker.errors.count("is lost") == 1

    def test_a_late_settle_changes_nothing_either(self, stalled, meeting, pools):
        """Nothing was renewed in between: the settle itself finds out."""
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool, _ = stalled(1)
        pool.start()
        late = meeting.guest()
        reap(job)
        pool.finish()
        other = pools()
        other.start()
        guest = meeting.guest()
        before = audit(job)

        late.let_go("late")
        eventually(lambda: pool.outcomes, "the first pool settles nothing")

        counted(pool, {SettleOutcome.CLAIM_LOST: 1})
        assert audit(job) == before
        guest.let_go("in time")
        eventually(succeeded(job), "the job was not settled")
        assert Job.objects.get(pk=job.pk).result == "in time"

    @pytest.mark.parametrize("late_first", [True, False])
    def test_the_same_process_may_have_claimed_its_reaped_job_again(
        self, stalled, meeting, handler, late_first, caplog
    ):
        told = {}

        @handler
        def watched(job):
            answer = meet(job, attempt=job.attempts)
            told[job.attempts] = job.claim_lost
            return answer

        job = Job.objects.enqueue("watched", meeting.payload)
        pool, free = stalled(2)
        pool.start()
        late = meeting.guest()
        reap(job)
        guest = meeting.guest()
        assert [late.news["attempt"], guest.news["attempt"]] == [1, 2]
        before = audit(job)

        free.set()
        eventually(lambda: losses(caplog), "the loss was not noticed")
        renewed(job, times=2)

        if late_first:
            late.let_go("late")
            eventually(lambda: pool.outcomes[SettleOutcome.CLAIM_LOST], "nothing was settled")
            assert audit(job) == before
        guest.let_go("in time")
        eventually(succeeded(job), "the job was not settled")
        if not late_first:
            after = audit(job)
            late.let_go("late")
            eventually(lambda: pool.outcomes[SettleOutcome.CLAIM_LOST], "nothing was settled")
            assert audit(job) == after
        job.refresh_from_db()
        assert (job.result, job.attempts) == ("in time", 2)
        assert told == {1: True, 2: False}
        counted(pool, {SettleOutcome.CLAIM_LOST: 1, SettleOutcome.SUCCEEDED: 1})

    def test_is_reported_once_with_the_jobs_id_and_type(self, pools, meeting, caplog):
        lost, kept = (Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2))
        pools(2).start()
        guests = [meeting.guest() for _ in range(2)]
        Job.objects.release([Job.objects.get(pk=lost.pk).claim])
        Job.objects.cancel(lost)
        eventually(lambda: losses(caplog), "the loss was not noticed")
        renewed(kept, times=3)

        [record] = losses(caplog)
        assert record.levelno == logging.ERROR
        assert str(lost.pk) in record.getMessage()
        assert "(test.meet)" in record.getMessage()
        assert str(kept.pk) not in caplog.text
        for guest in guests:
            guest.let_go()
        eventually(succeeded(kept), "the other job was not settled")

    def test_a_settle_under_way_is_none(self, pools, caplog):
        """Many short jobs, renewed as often as can be."""
        jobs = [Job.objects.enqueue("test.echo") for _ in range(300)]
        pool = pools(4)
        pool._renewer._pause = lambda: 0.0
        pool.start()
        eventually(succeeded(*jobs), "not every job ran")

        assert losses(caplog) == []
        counted(pool, {SettleOutcome.SUCCEEDED: 300})


class TestAHeldClaim:
    def test_outlives_its_lease_ten_times_and_runs_once(self, pools, meeting, jobqueue):
        """Two workers reap as often as they can."""
        jobqueue(POLL_INTERVAL=0.05, LEASE_CAP=0.5, REAPER_INTERVAL=0.1)
        job = Job.objects.enqueue("test.meet", meeting.payload)
        for pool in (pools(), pools()):
            pool.start()
        guest = meeting.guest()
        until = Job.objects.now() + timedelta(seconds=5)
        eventually(lambda: lease_of(job) > until, "the claim was not renewed", 10)

        assert meeting.nobody_waits()
        guest.let_go("done")
        eventually(succeeded(job), "the job was not settled")
        job.refresh_from_db()
        assert (job.attempts, job.result) == (1, "done")
        assert not job.attempt_history.exists()

    def test_is_renewed_by_the_lease_of_its_type(self, pools, meeting, handler, jobqueue):
        jobqueue(POLL_INTERVAL=0.05, LEASE_CAP=600)
        handler(name="long", max_runtime=500)(meet)
        handler(name="short", max_runtime=1)(meet)
        jobs = {name: Job.objects.enqueue(name, meeting.payload) for name in ("long", "short")}
        pools(2).start()
        for _ in jobs:
            meeting.guest()

        seconds = {job.type: job.lease_seconds for job in Job.objects.running()}
        assert seconds == {"long": 560, "short": 61}

    def test_keeps_the_row_otherwise_as_it_was(self, pools, meeting):
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pools().start()
        meeting.guest()
        before = Job.objects.filter(pk=job.pk).values().get()

        renewed(job, times=2)

        after = Job.objects.filter(pk=job.pk).values().get()
        assert after.pop("lease_expires_at") > before.pop("lease_expires_at")
        assert after == before

    def test_that_expired_is_renewed_while_nobody_reaped_it(self, stalled, meeting):
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool, free = stalled(1)
        pool.start()
        guest = meeting.guest()
        eventually(lambda: lease_of(job) < Job.objects.now(), "the lease did not run out")

        free.set()
        eventually(lambda: lease_of(job) > Job.objects.now(), "the claim was not renewed")

        guest.let_go("done")
        eventually(succeeded(job), "the job was not settled")
        eventually(lambda: pool.outcomes == {SettleOutcome.SUCCEEDED: 1}, "it counted otherwise")


@on_postgresql
class TestALockedRow:
    def test_costs_no_other_claim_its_lease_and_no_slot_its_work(self, pools, meeting):
        jobs = [Job.objects.enqueue("test.meet", meeting.payload) for _ in range(4)]
        pool = pools(5)
        pool.start()
        guests = {guest.job_id: guest for guest in (meeting.guest() for _ in jobs)}
        locked, *others = jobs
        with another_connection() as other, other.cursor() as cursor:
            cursor.execute("BEGIN")
            table = connection.ops.quote_name(Job._meta.db_table)
            cursor.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", [locked.pk])
            until = Job.objects.now() + timedelta(seconds=3 * LEASE_SECONDS)
            while Job.objects.now() < until:
                now = Job.objects.now()
                assert all(lease_of(job) > now for job in others)
                echo = Job.objects.enqueue("test.echo")
                eventually(succeeded(echo), "the free slot stands still", 5)
            guests[str(locked.pk)].let_go("late")
            more = [Job.objects.enqueue("test.echo") for _ in range(5)]
            eventually(succeeded(*more), "the slot of the locked row stands still", 5)
            for job in others:
                guests[str(job.pk)].let_go("done")
            eventually(succeeded(*others), "the other jobs cannot be settled", 5)
            cursor.execute("ROLLBACK")
        eventually(succeeded(locked), "the locked job was not settled")

        assert set(pool.outcomes) == {SettleOutcome.SUCCEEDED}
        assert set(Job.objects.values_list("attempts", flat=True)) == {1}


OUT_OF_ORDER = "58030"
REFUSED = "23514"


def trigger(condition, sqlstate=OUT_OF_ORDER):
    """Let the database fail where `condition` holds, for no reason of the row's content."""
    table = connection.ops.quote_name(Job._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE FUNCTION out_of_order() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF {condition} THEN
                    RAISE EXCEPTION 'out of order' USING ERRCODE = '{sqlstate}';
                END IF;
                RETURN NEW;
            END $$"""
        )
        cursor.execute(
            f"CREATE TRIGGER out_of_order BEFORE UPDATE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION out_of_order()"
        )


def mend():
    table = connection.ops.quote_name(Job._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER IF EXISTS out_of_order ON {table}")
        cursor.execute("DROP FUNCTION IF EXISTS out_of_order()")


@pytest.fixture
def faulty(transactional_db):
    yield trigger
    mend()


@on_postgresql
class TestADatabaseFault:
    def test_makes_the_renewer_try_again_every_second(
        self, pools, meeting, faulty, jobqueue, caplog
    ):
        jobqueue(POLL_INTERVAL=0.05, LEASE_CAP=9, REAPER_ENABLED=False)
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools()
        pool.start()
        guest = meeting.guest()
        # A first tick comes after three seconds, whether the database is in order or not.
        faulty("OLD.status = 'running' AND NEW.status = 'running'")
        eventually(lambda: len(losses(caplog)) >= 3, "a failed renewal is not tried again", 15)
        mend()
        renewed(job)

        times = [record.created for record in losses(caplog)]
        assert all(0.8 < after - before < 2 for before, after in pairwise(times))
        assert {record.levelno for record in losses(caplog)} == {logging.WARNING}
        guest.let_go("done")
        eventually(succeeded(job), "the job was not settled")
        counted(pool, {SettleOutcome.SUCCEEDED: 1})

    def test_that_delays_a_settle_does_not_cost_the_claim(self, pools, meeting, faulty, jobqueue):
        jobqueue(POLL_INTERVAL=0.05, LEASE_CAP=3, REAPER_ENABLED=False)  # Given up after thirty.
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools()
        pool.start()
        guest = meeting.guest()
        faulty("NEW.status = 'succeeded'")
        guest.let_go("late but written")
        eventually(lambda: pool.busy == 0, "the handler does not end")
        renewed(job, times=2)
        mend()

        eventually(succeeded(job), "the settle was not sent again")
        job.refresh_from_db()
        assert (job.result, job.attempts) == ("late but written", 1)
        counted(pool, {SettleOutcome.SUCCEEDED: 1})


@on_postgresql
def test_a_renewal_waits_for_no_lock_of_a_settle(pools, meeting):
    """A row that is being settled in an open transaction counts as held."""
    job, other = (Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2))
    pools(2).start()
    guests = [meeting.guest() for _ in range(2)]
    locked, done = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            Job.objects.select_for_update().get(pk=job.pk)
            locked.set()
            assert done.wait(30)

    aside = Aside(hold)
    assert locked.wait(30)
    renewed(other, times=3)
    done.set()
    aside.answer()

    renewed(job)
    for guest in guests:
        guest.let_go()
    eventually(succeeded(job, other), "not every job was settled")
