"""`job_settled`: sent once for each job that ended, by whoever ended it, after the write."""

import contextlib
import dataclasses
import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction

from django_jobqueue import PermanentError
from django_jobqueue.models import Job
from django_jobqueue.signals import job_settled
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.managers.rows import Aside, another_connection, claimed, now
from tests.marks import on_postgresql
from tests.processes import counted, eventually
from tests.worker.test_renewing import REFUSED, mend, trigger

QUICK = {"POLL_INTERVAL": 0.05, "RETRY_BASE": 0.01, "RETRY_MAX": 0.02}


class Heard:
    """A receiver that keeps what it was told, and what another connection saw then."""

    def __init__(self):
        self.events = []
        self.senders = []
        self.seen = []
        self.threads = []

    def __call__(self, sender, event, **others):
        with another_connection() as other, other.cursor() as cursor:
            cursor.execute(
                f"SELECT status FROM {Job._meta.db_table} WHERE id = %s", [adapted(event.job_id)]
            )
            self.seen.append(cursor.fetchone())
        self.senders.append(sender)
        self.threads.append(threading.current_thread().name)
        self.events.append(event)

    def of(self, job):
        return [event for event in self.events if event.job_id == job.pk]


def adapted(job_id):
    return job_id if connections["default"].features.has_native_uuid_field else job_id.hex


@contextlib.contextmanager
def listening(*receivers):
    for receiver in receivers:
        job_settled.connect(receiver, weak=False)
    try:
        yield
    finally:
        for receiver in receivers:
            job_settled.disconnect(receiver)


@pytest.fixture
def heard(pools):
    """Listens until the pools are stopped."""
    made = Heard()
    with listening(made):
        yield made


def ended(*jobs):
    ids = [job.pk for job in jobs]
    return lambda: Job.objects.terminal().filter(pk__in=ids).count() == len(ids)


class TestByTheWorker:
    def test_tells_what_became_of_the_job(self, heard, drain):
        job = Job.objects.enqueue(
            "test.echo", {"n": 1}, queue="letters", subject=("letter", 7), org_id="acme"
        )

        drain()

        [event] = heard.events
        assert dataclasses.asdict(event) == {
            "job_id": job.pk,
            "job_type": "test.echo",
            "queue": "letters",
            "status": JobStatus.SUCCEEDED,
            "attempts": 1,
            "subject_type": "letter",
            "subject_id": "7",
            "org_id": "acme",
            "last_error": "",
            "using": "default",
        }
        assert heard.senders == [Job]

    def test_the_event_is_frozen(self, heard, run_one):
        run_one("test.echo")

        [event] = heard.events
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.status = JobStatus.FAILED

    def test_comes_after_the_write(self, heard, drain):
        for name in ("test.echo", "test.async", "test.permanent"):
            Job.objects.enqueue(name)

        drain(2)

        assert sorted(heard.seen) == [("failed",), ("succeeded",), ("succeeded",)]

    def test_comes_once_however_often_the_job_was_tried(self, heard, run_one):
        job = run_one("test.fail")

        [event] = heard.events
        assert (event.job_id, event.status, event.attempts) == (job.pk, JobStatus.FAILED, 2)
        assert event.last_error == job.last_error == "ValueError: as asked"

    def test_a_success_tells_the_error_of_an_earlier_attempt(self, heard, run_one):
        job = run_one("test.flaky")

        [event] = heard.events
        assert (event.status, event.attempts) == (JobStatus.SUCCEEDED, 2)
        assert event.last_error == job.last_error != ""

    def test_a_permanent_error_is_told_with_its_words(self, heard, run_one, handler):
        @handler
        def never(job):
            raise PermanentError("no such report")

        run_one("never")

        assert [event.last_error for event in heard.events] == ["PermanentError: no such report"]

    def test_a_timeout_is_told_by_the_slot_that_goes_on(self, heard, pools, handler):
        opened = threading.Event()

        @handler(max_runtime=0.1, max_attempts=1)
        def slow(job):
            opened.wait(30)

        job = Job.objects.enqueue("slow")
        pools().start()
        eventually(lambda: heard.events, "nobody was told")
        opened.set()

        [event] = heard.events
        assert (event.job_id, event.status) == (job.pk, JobStatus.FAILED)
        assert event.last_error.startswith("JobTimeoutError")

    @on_postgresql
    def test_what_the_database_refuses_is_told_as_the_failure_it_became(self, heard, run_one):
        trigger("NEW.status = 'succeeded'", REFUSED)
        try:
            job = run_one("test.echo")
        finally:
            mend()

        assert job.status == JobStatus.FAILED
        [event] = heard.events
        assert (event.status, event.last_error) == (JobStatus.FAILED, job.last_error)

    def test_the_receivers_of_a_job_run_before_its_slot_claims_again(self, pools):
        order = []

        def receive(sender, event, **others):
            order.append((event.job_id, Job.objects.running().count()))

        jobs = [Job.objects.enqueue("test.echo") for _ in range(10)]
        with listening(receive):
            pool = pools(1)
            pool.start()
            eventually(lambda: len(order) == 10, "not everybody was told")
            pool.stop()

        assert order == [(job.pk, 0) for job in jobs]

    def test_a_slow_receiver_holds_its_own_slot_only(self, pools):
        opened = threading.Event()
        first = Job.objects.enqueue("test.async")

        def receive(sender, event, **others):
            if event.job_id == first.pk:
                opened.wait(30)

        with listening(receive):
            pool = pools(2)
            pool.start()
            others = [Job.objects.enqueue("test.echo") for _ in range(10)]
            eventually(ended(first, *others), "the other slot waits for the receiver", 10)
            assert pool.busy == 0
            opened.set()
            pool.stop()

    @on_postgresql
    def test_an_outcome_written_late_is_told_too(self, heard, pools, meeting):
        """Somebody had locked the row; its slot went on."""
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools(1)
        pool.start()
        guest = meeting.guest()
        locked, free = threading.Event(), threading.Event()

        def hold():
            with transaction.atomic():
                Job.objects.select_for_update().get(pk=job.pk)
                locked.set()
                assert free.wait(30)

        aside = Aside(hold)
        assert locked.wait(30)
        guest.let_go()
        other = Job.objects.enqueue("test.echo")
        eventually(lambda: heard.of(other), "the slot waits for the lock")
        assert heard.of(job) == []
        free.set()
        aside.answer()
        eventually(lambda: heard.of(job), "nobody was told")

        assert len(heard.events) == 2
        assert heard.seen == [("succeeded",), ("succeeded",)]


class TestNobodyIsTold:
    def test_of_a_retry_a_deferral_or_a_release(self, heard, pools, handler, jobqueue, meeting):
        jobqueue(**QUICK | {"RETRY_BASE": 60, "RETRY_MAX": 60})
        Job.objects.enqueue("test.fail")
        Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools(2)
        pool.start()
        meeting.guest()
        eventually(lambda: pool.outcomes[SettleOutcome.RETRY_SCHEDULED], "nothing was tried")
        assert pool.stop(grace=0) == 1

        assert heard.events == []

    def test_of_a_lost_claim(self, heard, pools, meeting):
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools(1)
        pool.start()
        guest = meeting.guest()
        pool.finish()
        Job.objects.release([Job.objects.get(pk=job.pk).claim])
        guest.let_go()
        eventually(lambda: pool.outcomes, "nothing was settled")
        pool.stop()

        counted(pool, {SettleOutcome.CLAIM_LOST: 1})
        assert heard.events == []

    @on_postgresql
    def test_of_a_write_that_failed(self, heard, pools, meeting):
        Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools(1)
        pool.start()
        guest = meeting.guest()
        trigger("NEW.status = 'succeeded'")
        try:
            guest.let_go()
            eventually(lambda: pool.busy == 0, "the handler does not end")
            pool.stop(grace=0.5)
        finally:
            mend()

        counted(pool, {SettleOutcome.WRITE_FAILED: 1})
        assert heard.events == []


class TestByTheReaper:
    def test_tells_of_a_job_whose_attempts_are_spent_and_of_no_other(self, heard, pools, jobqueue):
        jobqueue(**QUICK, REAPER_INTERVAL=0.1)
        dead = {"lease_seconds": 0.3, "lease_expires_at": now() - timedelta(seconds=1)}
        spent = claimed("test.none", attempts=2, max_attempts=2, **dead)
        claimed("test.none", attempts=1, max_attempts=2, **dead)
        pools(1).start()
        eventually(lambda: not Job.objects.running().exists(), "nothing was reaped", 15)
        eventually(lambda: heard.events, "nobody was told")

        [event] = heard.events
        assert (event.job_id, event.status, event.attempts) == (spent.pk, JobStatus.FAILED, 2)
        assert heard.seen == [("failed",)]
        assert heard.senders == [Job]
        assert "died" in event.last_error


class TestByACancel:
    def test_tells_of_each_job_once(self, heard):
        jobs = [Job.objects.enqueue("test.echo") for _ in range(3)]

        Job.objects.cancel(jobs)
        Job.objects.cancel(jobs)

        assert sorted(event.job_id for event in heard.events) == [job.pk for job in jobs]
        assert {event.status for event in heard.events} == {JobStatus.CANCELLED}
        assert set(heard.seen) == {("cancelled",)}

    def test_waits_for_the_commit(self, heard):
        job = Job.objects.enqueue("test.echo")
        with transaction.atomic():
            Job.objects.cancel(job)
            assert heard.events == []

        assert [event.job_id for event in heard.events] == [job.pk]

    def test_that_is_rolled_back_tells_nobody(self, heard):
        job = Job.objects.enqueue("test.echo")
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            Job.objects.cancel(job)
            raise ZeroDivisionError

        assert heard.events == []
        assert Job.objects.get(pk=job.pk).status == JobStatus.PENDING


class TestAReceiverThatRaises:
    def test_harms_neither_the_job_nor_the_others(self, heard, drain, caplog):
        def broken(sender, event, **others):
            raise ValueError("no mail server")

        jobs = [Job.objects.enqueue("test.echo") for _ in range(3)]
        with listening(broken):
            drain()

        assert ended(*jobs)()
        assert len(heard.events) == 3
        failures = [r for r in caplog.records if r.name == "django_jobqueue.signals"]
        assert len(failures) == 3
        assert "ValueError: no mail server" in failures[0].exc_text

    @pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
    def test_harms_no_later_job_whatever_it_raises(self, pools, error):
        def broken(sender, event, **others):
            raise error

        jobs = [Job.objects.enqueue("test.echo") for _ in range(3)]
        with listening(broken):
            pool = pools(1)
            pool.start()
            eventually(ended(*jobs), "the slot died of a receiver", 20)
            assert pool.died() == []
            pool.stop()

    def test_may_leave_a_transaction_open(self, drain):
        """Its connection is not the queue's."""
        jobs = [Job.objects.enqueue("test.echo") for _ in range(3)]
        with listening(leave_a_transaction_open):
            drain()

        assert ended(*jobs)()

    def test_of_the_reaper_may_do_so_too(self, pools, jobqueue):
        jobqueue(**QUICK, REAPER_INTERVAL=0.1)
        lease = {"lease_seconds": 0.3, "lease_expires_at": now() - timedelta(seconds=1)}
        spent = [claimed("test.none", attempts=1, max_attempts=1, **lease) for _ in range(2)]
        with listening(leave_a_transaction_open):
            pool = pools(1)
            pool.start()
            eventually(ended(*spent), "nothing was reaped", 15)
            later = Job.objects.enqueue("test.echo", delay=0.1)
            eventually(ended(later), "housekeeping works inside the receiver's transaction", 10)
            pool.stop()


def leave_a_transaction_open(sender, event, **others):
    transaction.atomic().__enter__()
    Job.objects.count()
