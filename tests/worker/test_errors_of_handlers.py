"""Whatever a handler raises fails that attempt only, and is stored in a form the database takes."""

import asyncio

import pytest

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome

ENDINGS = [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopIteration]


def then_one_more(drain, job):
    """Run `job` and one behind it in the same single slot; return the rows of both."""
    behind = Job.objects.enqueue("test.echo", {"the": "next"}, priority=1)
    drain()
    job.refresh_from_db()
    behind.refresh_from_db()
    return job, behind


@pytest.mark.parametrize("error", ENDINGS)
def test_an_exception_that_ends_programs_fails_the_attempt_only(drain, handler, error):
    @handler(max_attempts=2)
    def end(job):
        raise error("the end")

    job, behind = then_one_more(drain, Job.objects.enqueue("end"))

    assert (job.status, job.attempts) == (JobStatus.FAILED, 2)
    assert job.last_error == f"{error.__name__}: the end"
    assert behind.status == JobStatus.SUCCEEDED


@pytest.mark.parametrize("error", ENDINGS)
def test_an_exception_that_ends_programs_fails_an_async_attempt_only(drain, handler, error):
    @handler(max_attempts=2)
    async def end(job):
        raise error("the end")

    Job.objects.enqueue("test.async", priority=2)
    job, behind = then_one_more(drain, Job.objects.enqueue("end"))

    assert (job.status, job.attempts) == (JobStatus.FAILED, 2)
    # Python itself turns a StopIteration of a coroutine into a RuntimeError.
    assert error is StopIteration or job.last_error == f"{error.__name__}: the end"
    assert behind.status == JobStatus.SUCCEEDED
    assert Job.objects.get(type="test.async").status == JobStatus.SUCCEEDED


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_task_of_an_async_handler_that_ends_programs_does_not_end_the_loop(drain, handler, error):
    @handler(max_attempts=1)
    async def end(job):
        async def child():
            raise error("from below")

        await asyncio.create_task(child())

    Job.objects.enqueue("test.async", {"a": 1}, priority=2)
    job, _ = then_one_more(drain, Job.objects.enqueue("end"))

    assert (job.status, job.last_error) == (JobStatus.FAILED, f"{error.__name__}: from below")
    assert Job.objects.get(type="test.async").result == {"a": 1}


def test_an_async_handler_that_cancels_itself_fails_the_attempt_only(drain, handler):
    @handler(max_attempts=1)
    async def give_up(job):
        asyncio.current_task().cancel()
        await asyncio.sleep(30)

    job, behind = then_one_more(drain, Job.objects.enqueue("give_up"))

    assert (job.status, job.last_error) == (JobStatus.FAILED, "CancelledError")
    assert behind.status == JobStatus.SUCCEEDED


class Broken(Exception):
    def __str__(self):
        raise ValueError("no words")


class Fatal(Exception):
    def __str__(self):
        raise SystemExit(3)


class NoText(Exception):
    def __str__(self):
        return 7  # noqa: PLE0307 (the mistake that is tested)


@pytest.mark.parametrize("error", [Broken, Fatal, NoText])
def test_an_error_without_readable_words_is_stored(drain, handler, error):
    @handler(max_attempts=1)
    def fail(job):
        raise error

    job, behind = then_one_more(drain, Job.objects.enqueue("fail"))

    assert job.status == JobStatus.FAILED
    assert job.last_error.startswith(f"{error.__name__}: ")
    attempt = job.attempt_history.get()
    assert attempt.exception_class == f"{__name__}.{error.__name__}"
    assert "cannot be read" in attempt.message
    assert "in fail" in attempt.traceback
    assert behind.status == JobStatus.SUCCEEDED


def test_characters_that_the_database_refuses_are_replaced(run_one, handler):
    @handler(max_attempts=1)
    def fail(job):
        raise ValueError("a\0b\ud800c")

    job = run_one("fail")

    assert job.last_error == "ValueError: a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    assert "\0" not in job.attempt_history.get().traceback


def test_a_huge_message_is_capped(run_one, handler):
    @handler(max_attempts=1)
    def fail(job):
        raise ValueError("ä" * 3_000_000)

    job = run_one("fail")

    attempt = job.attempt_history.get()
    assert len(job.last_error) == 2_000
    assert job.last_error.startswith("ValueError: ää")
    assert 2_000 < len(attempt.message) <= 10_000
    assert len(attempt.traceback) <= 50_000


def test_the_end_of_a_deep_traceback_is_kept(run_one, handler):
    def dig(depth):
        try:
            dig(depth - 1) if depth else {}["no such key"]
        except Exception as error:
            raise ValueError(f"level {depth}") from error

    @handler(max_attempts=1)
    def fail(job):
        dig(300)

    attempt = run_one("fail").attempt_history.get()

    assert 40_000 < len(attempt.traceback) <= 50_000
    assert attempt.traceback.rstrip().endswith("ValueError: level 300")


def test_an_endless_recursion_fails_the_attempt_only(drain, handler):
    @handler(max_attempts=1)
    def fail(job):
        fail(job)

    job, behind = then_one_more(drain, Job.objects.enqueue("fail"))

    assert job.last_error.startswith("RecursionError: ")
    assert behind.status == JobStatus.SUCCEEDED


def test_a_class_with_a_long_name_is_capped(run_one, handler):
    error = type("E" * 5_000, (Exception,), {})

    @handler(max_attempts=1)
    def fail(job):
        raise error("x")

    job = run_one("fail")

    assert len(job.attempt_history.get().exception_class) == 200
    assert len(job.last_error) <= 2_000
    assert job.status == JobStatus.FAILED


def test_a_group_of_errors_is_stored_with_its_parts(run_one, handler):
    @handler(max_attempts=1)
    async def fail(job):
        async def child(number):
            raise ValueError(f"part {number}")

        async with asyncio.TaskGroup() as group:
            for number in range(2):
                group.create_task(child(number))

    job = run_one("fail")

    assert job.last_error.startswith("ExceptionGroup: ")
    assert "part 0" in job.attempt_history.get().traceback
    assert "part 1" in job.attempt_history.get().traceback


def test_each_failed_attempt_keeps_its_own_record(run_one, handler):
    @handler(max_attempts=2)
    def fail(job):
        raise (KeyError if job.attempts == 1 else OSError)("gone")

    job = run_one("fail")

    first, second = job.attempt_history.order_by("id")
    assert (first.outcome, first.exception_class) == (SettleOutcome.RETRY_SCHEDULED, "KeyError")
    assert (second.outcome, second.exception_class) == (SettleOutcome.FAILED, "OSError")
    assert first.started_at <= first.finished_at <= second.started_at <= second.finished_at
    assert {first.worker, second.worker} == {job.worker}
    assert first.claim_token != second.claim_token
    assert job.last_error == "OSError: gone"
