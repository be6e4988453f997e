"""One suite, in a transaction that the test rolls back and in none."""

import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase

from django_jobqueue import registry
from django_jobqueue.exceptions import HandlerNotFound, InvalidResult
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.policy import ExecutionProfile
from django_jobqueue.signals import job_settled
from django_jobqueue.states import JobStatus, SettleOutcome
from django_jobqueue.testing import NotRunnable, arun_job, fake_clock, run_job
from tests.claims import locked
from tests.marks import committed, on_postgresql
from tests.testing.jobs import Handler


class Running:
    def test_it_runs_a_job_of_a_type_and_returns_what_the_row_holds(self):
        run = run_job("site.chain", {"left": 0}, queue="mail", subject=("report", 7))

        assert run.outcome is SettleOutcome.SUCCEEDED
        assert (run.job.status, run.job.attempts, run.job.queue) == ("succeeded", 1, "mail")
        assert run.result == 0
        assert run.error is None
        assert run.job.worker.endswith(":test")

    def test_it_takes_a_handler_a_job_or_an_id(self):
        job = Job.objects.enqueue("site.chain", {"left": 0})
        other = Job.objects.enqueue("site.chain", {"left": 0})

        run_job(other)
        run_job(job.pk)
        run_job(registry.get("site.chain"), {"left": 0})

        assert set(Job.objects.values_list("status", flat=True)) == {"succeeded"}

    def test_it_runs_this_job_however_many_others_come_first(self):
        Job.objects.enqueue("site.chain", {"left": 1}, priority=-5)
        job = Job.objects.enqueue("site.chain", {"left": 0})

        assert run_job(job).job.pk == job.pk
        assert Job.objects.pending().count() == 1

    def test_the_handler_gets_the_payload_as_the_database_holds_it(self):
        payload = {"list": ["ours"], "tuple": (1, 2)}
        inside = connection.in_atomic_block

        assert run_job("site.meddle", payload).result == ["list", inside]
        assert payload == {"list": ["ours"], "tuple": (1, 2)}
        assert Job.objects.get().payload == {"list": ["ours"], "tuple": [1, 2]}

    def test_what_a_handler_raises_is_raised_once_the_row_says_so(self):
        with pytest.raises(ValueError, match="attempt 1") as caught:
            run_job("site.flaky")

        job = Job.objects.get()
        assert (job.status, job.last_error) == ("pending", "ValueError: attempt 1")
        (note,) = caught.value.__notes__
        assert note.startswith(f"Raised by site.flaky {job.pk}, attempt 1: retry-scheduled. ")

    def test_a_retry_is_run_at_its_time(self):
        first = run_job("site.flaky", raise_errors=False)
        assert first.outcome is SettleOutcome.RETRY_SCHEDULED
        assert isinstance(first.error, ValueError)

        second = run_job(first.job)

        assert (second.outcome, second.result) == (SettleOutcome.SUCCEEDED, "done")
        assert second.job.started_at == first.job.scheduled_for
        assert JobAttempt.objects.get().message == "attempt 1"

    def test_a_scheduled_job_is_run_at_its_time_and_others_stay_scheduled(self):
        other = Job.objects.enqueue("site.chain", {"left": 0}, delay=timedelta(minutes=5))
        job = Job.objects.enqueue("site.chain", {"left": 0}, delay=timedelta(hours=1))

        assert run_job(job).job.started_at == job.scheduled_for
        other.refresh_from_db()
        assert other.scheduled_for is not None
        assert Job.objects.now() < other.scheduled_for

    def test_a_spent_budget_fails_the_job(self):
        registry.get("site.flaky").profile = ExecutionProfile(max_attempts=1)

        run = run_job("site.flaky", raise_errors=False)

        assert (run.outcome, run.job.status) == (SettleOutcome.FAILED, JobStatus.FAILED)
        assert run.job.max_attempts == 1

    def test_a_permanent_error_fails_the_job_at_once(self):
        run = run_job("site.permanent", raise_errors=False)

        assert (run.outcome, run.job.attempts) == (SettleOutcome.FAILED, 1)

    def test_a_rate_limit_gives_the_attempt_back(self):
        run = run_job("site.limited", raise_errors=False)

        assert run.outcome is SettleOutcome.RATE_LIMIT_DEFERRED
        assert run.attempt == 1
        assert (run.job.attempts, run.job.rate_limit_hits) == (0, 1)
        assert run.job.scheduled_for - run.job.rate_limited_at >= timedelta(seconds=90)
        assert run_job(run.job).outcome is SettleOutcome.SUCCEEDED

    def test_a_result_that_cannot_be_stored_is_an_error_of_the_handler(self):
        with pytest.raises(InvalidResult, match="result is of type set"):
            run_job("site.unstorable")

    def test_system_exit_fails_the_attempt_only(self):
        for job_type in ("site.leave", "site.harsh"):
            run = run_job(job_type, raise_errors=False)
            assert run.outcome is SettleOutcome.RETRY_SCHEDULED
            assert isinstance(run.error, SystemExit)

    def test_an_exception_that_is_none_of_the_handlers_is_always_raised(self):
        def interrupt(job):
            raise KeyboardInterrupt

        registry.register(Handler("site.interrupt", interrupt))

        with pytest.raises(KeyboardInterrupt):
            run_job("site.interrupt", raise_errors=False)

    def test_an_async_handler_sees_the_rows_of_the_test(self):
        group = Group.objects.create(name="ours")

        assert run_job("site.gentle", {"group": group.pk}).result == "ours"
        assert Group.objects.filter(name="ours again").exists()

    def test_a_handler_that_breaks_the_transaction_leaves_it_usable(self):
        run = run_job("site.duplicate", raise_errors=False)

        assert run.outcome is SettleOutcome.RETRY_SCHEDULED
        assert run.job.last_error.startswith("IntegrityError")
        # A worker's handler commits each statement; in a transaction the error undoes them all.
        assert Group.objects.count() == (0 if connection.in_atomic_block else 1)

    def test_what_was_written_before_an_error_stays(self):
        run_job("site.half", raise_errors=False)

        assert Group.objects.filter(name="half").exists()

    def test_what_waits_for_the_commit_comes_after_the_handler(self):
        run_job("site.follow_up")

        assert Job.objects.pending().get().type == "site.chain"

    def test_the_receivers_of_job_settled_are_told(self):
        events = []

        def receive(sender, event, **kwargs):
            events.append((event.job_type, event.status, event.attempts))

        job_settled.connect(receive, sender=Job)
        try:
            run_job("site.chain", {"left": 0})
            run_job("site.permanent", raise_errors=False)
        finally:
            job_settled.disconnect(receive, sender=Job)

        assert events == [("site.chain", "succeeded", 1), ("site.permanent", "failed", 1)]

    def test_a_job_that_no_worker_would_run_is_refused_with_the_reason(self):
        job = run_job("site.chain", {"left": 0}).job
        with pytest.raises(NotRunnable, match="cannot run: it is succeeded"):
            run_job(job)
        with pytest.raises(NotRunnable, match="There is no job"):
            run_job(uuid.uuid4())

        paused = Job.objects.enqueue("site.chain", {"left": 0})
        Job.objects.pause("queue", "default")
        with pytest.raises(NotRunnable, match="its queue 'default' or its type is paused"):
            run_job(paused)

    def test_an_unknown_type_is_refused_before_anything_is_written(self):
        with pytest.raises(HandlerNotFound, match=r"for 'site.chian'; known are: .*site.chain"):
            run_job("site.chian", {"left": 0})

        assert not Job.objects.exists()

    def test_a_type_whose_dedup_key_is_taken_makes_no_job_to_run(self):
        Job.objects.enqueue("site.chain", {"left": 3}, subject=("report", 7))

        with pytest.raises(NotRunnable, match="has the dedup key"):
            run_job("site.chain", {"left": 0}, subject=("report", 7))

    def test_an_argument_that_cannot_be_meant_is_refused(self):
        job = Job.objects.enqueue("site.chain", {"left": 0})
        with pytest.raises(TypeError, match="a payload and options with a type"):
            run_job(job, {"left": 1})
        with pytest.raises(TypeError, match="run_job\\(\\) got 7"):
            run_job(7)

    def test_a_handler_that_deletes_its_job_has_lost_its_claim(self):
        registry.register(
            Handler("site.erase", lambda job: Job.objects.filter(pk=job.pk).delete() and None)
        )

        run = run_job("site.erase")

        assert run.outcome is SettleOutcome.CLAIM_LOST
        assert run.job.type == "site.erase"

    async def test_an_async_test_awaits_it(self):
        group = await Group.objects.acreate(name="ours")

        run = await arun_job("site.gentle", {"group": group.pk})

        assert run.result == "ours"


class InATransaction(Running, TestCase):
    def test_the_rows_are_seen_by_nobody_else(self):
        run_job("site.chain", {"left": 0})

        assert connection.in_atomic_block

    def test_callbacks_of_a_handler_run_once_whoever_captures_them(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            run_job("site.follow_up")

        assert Job.objects.pending().count() == 1
        # What is left is the wake-up for the job of follow_up itself.
        assert len(callbacks) == 1

    def test_a_callback_that_raises_fails_the_attempt(self):
        def fail_later(job):
            transaction.on_commit(lambda: 1 // 0)

        registry.register(Handler("site.fail_later", fail_later))

        run = run_job("site.fail_later", raise_errors=False)

        assert isinstance(run.error, ZeroDivisionError)
        assert run.outcome is SettleOutcome.RETRY_SCHEDULED


class WithoutATransaction(Running, TransactionTestCase):
    def test_the_handler_runs_outside_a_transaction(self):
        assert run_job("site.meddle", {"list": []}).result == ["list", False]


@on_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("raised", [False, True])
def test_a_result_that_the_database_refuses_is_the_error(raised):
    check = "CHECK (result ->> 'picky' <> 'bad')"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {Job._meta.db_table} ADD CONSTRAINT picky {check}")
    registry.register(Handler("site.picky", lambda job: {"picky": "bad"}))

    if raised:
        with pytest.raises(IntegrityError, match="picky"):
            run_job("site.picky")
        return
    run = run_job("site.picky", raise_errors=False)

    assert (run.outcome, run.job.status) == (SettleOutcome.FAILED, "failed")
    assert isinstance(run.error, IntegrityError)


@on_postgresql
@committed
def test_a_job_that_another_connection_holds_is_not_waited_for():
    job = Job.objects.enqueue("site.chain", {"left": 0})

    with locked(job), pytest.raises(NotRunnable, match="another connection holds its row"):
        run_job(job)


@pytest.mark.django_db
def test_a_function_of_pytest_needs_nothing_more():
    with fake_clock("2026-01-01T00:00Z") as clock:
        job = run_job("site.chain", {"left": 0}).job

    assert job.created_at == job.started_at == job.finished_at == clock.now
