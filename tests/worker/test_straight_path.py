"""The way of a job through a pool: claimed, run, settled."""

import math
import threading
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from django_jobqueue import JobHandler, PermanentError, RateLimitError, registry
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import JobStatus, SettleOutcome
from django_jobqueue.throttle import Throttle
from django_jobqueue.worker.event_loop import EventLoops
from django_jobqueue.worker.execution import Execution
from django_jobqueue.worker.running import Running
from tests.processes import eventually

PAYLOAD = {"word": "häß\u2028lich", "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}}


def outcomes(job):
    return [attempt.outcome for attempt in JobAttempt.objects.filter(job=job).order_by("id")]


@pytest.mark.parametrize("job_type", ["test.echo", "test.async"])
def test_a_job_runs_and_its_result_is_stored(run_one, job_type):
    job = run_one(job_type, PAYLOAD)

    assert job.status == JobStatus.SUCCEEDED
    assert job.result == PAYLOAD
    assert job.attempts == 1
    assert job.started_at <= job.finished_at
    assert job.executor == "server"
    assert job.claim_token is None
    assert job.lease_expires_at is None
    assert outcomes(job) == []


class Greet(JobHandler):
    type = "greet"

    def process(self, job):
        return f"hello {job.payload['name']}"


class GreetLater(JobHandler):
    type = "greet-later"

    async def process(self, job):
        return f"hello {job.payload['name']}"


@pytest.mark.parametrize("cls", [Greet, GreetLater])
def test_a_class_handler_runs(run_one, handler, cls):
    registry.register(cls())

    assert run_one(cls.type, {"name": "Ann"}).result == "hello Ann"


def test_a_handler_without_a_result_succeeds(run_one, handler):
    @handler
    def silent(job):
        pass

    job = run_one("silent")

    assert (job.status, job.result) == (JobStatus.SUCCEEDED, None)


@pytest.mark.parametrize("value", [False, 0, "", [], {}, "text", 1.5, [[1], (2,)]])
def test_any_json_value_is_a_result(run_one, handler, value):
    @handler
    def give(job):
        return value

    job = run_one("give")

    assert job.status == JobStatus.SUCCEEDED
    assert job.result == ([[1], [2]] if value == [[1], (2,)] else value)


def test_a_failed_attempt_is_retried_until_it_succeeds(run_one, handler):
    @handler
    def flaky(job):
        if job.attempts < 3:
            raise ValueError(f"attempt {job.attempts}")
        return "at last"

    job = run_one("flaky")

    assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "at last", 3)
    assert job.last_error == "ValueError: attempt 2"
    assert outcomes(job) == [SettleOutcome.RETRY_SCHEDULED] * 2


def test_a_retry_waits_for_its_backoff(pools, handler, jobqueue):
    jobqueue(RETRY_BASE=1000, RETRY_MAX=1000)

    @handler
    def flaky(job):
        raise ValueError

    job = Job.objects.enqueue("flaky")
    pool = pools(max_jobs=1)
    pool.start()
    pool.inbox.get(timeout=20)
    pool.stop(grace=20)

    job.refresh_from_db()
    assert job.status == JobStatus.PENDING
    wait = job.scheduled_for - job.attempt_history.get().finished_at
    assert timedelta(seconds=499) < wait < timedelta(seconds=1001)
    assert job.ready_at == job.scheduled_for


def test_a_job_fails_when_its_attempts_are_used_up(run_one):
    job = run_one("test.fail")

    assert (job.status, job.attempts, job.max_attempts) == (JobStatus.FAILED, 2, 2)
    assert job.last_error == "ValueError: as asked"
    assert job.result is None
    assert outcomes(job) == [SettleOutcome.RETRY_SCHEDULED, SettleOutcome.FAILED]
    numbers = job.attempt_history.order_by("id").values_list("number", flat=True)
    assert list(numbers) == [1, 2]


def test_the_setting_bounds_the_attempts_of_a_type_without_a_profile(run_one, handler, jobqueue):
    jobqueue(MAX_ATTEMPTS=1)

    @handler
    def flaky(job):
        raise ValueError

    job = run_one("flaky")

    assert (job.status, job.attempts, job.max_attempts) == (JobStatus.FAILED, 1, 1)


def test_a_permanent_error_fails_at_once(run_one):
    job = run_one("test.permanent")

    assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
    assert job.last_error == "PermanentError: never again"
    assert outcomes(job) == [SettleOutcome.FAILED]


def test_a_permanent_error_of_the_sites_own_kind_fails_at_once(run_one, handler):
    class NoSuchReport(PermanentError):
        pass

    @handler
    async def build(job):
        raise NoSuchReport(7)

    job = run_one("build")

    assert (job.attempts, job.last_error) == (1, "NoSuchReport: 7")


@pytest.mark.parametrize(
    "retry_after",
    [None, math.nan, math.inf, -5, "soon", 10**400, object()],
    ids=lambda value: type(value).__name__,
)
def test_a_strange_retry_after_is_no_obstacle(run_one, handler, jobqueue, retry_after):
    jobqueue(RATE_LIMIT_MAX_HITS=0)

    @handler(max_attempts=2)
    def limited(job):
        raise RateLimitError(retry_after=retry_after)

    assert run_one("limited").status == JobStatus.FAILED


def test_a_job_whose_handler_went_after_the_claim_fails_with_the_types_there_are(
    transactional_db, handler, unregister
):
    @handler
    def vanishing(job):
        raise AssertionError("not reached")

    job = Job.objects.enqueue("vanishing")
    token = uuid4()
    (claimed,) = Job.objects.claim([token], {"vanishing": timedelta(seconds=30)})
    unregister("vanishing")

    execution = Execution(EventLoops(), Throttle(), threading.Event(), on_start=print)
    decision = execution.run(Running(claimed, claimed.claim))

    assert Job.objects.settle([decision]) == {token: SettleOutcome.FAILED}
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
    assert job.last_error.startswith("HandlerNotFound: no handler is registered for job type")
    assert "'vanishing'" in job.last_error
    assert "test.echo" in job.last_error


def test_a_job_that_nobody_here_can_run_is_left_alone(drain):
    job = Job.objects.enqueue("of.another.deployment")

    drain()

    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_the_attempt_is_charged_before_the_handler_starts(run_one, handler):
    @handler
    def look(job):
        row = Job.objects.get(pk=job.pk)
        return [row.status, row.attempts, row.claim_token == job.claim_token, row.worker]

    job = run_one("look")

    assert job.result == ["running", 1, True, job.worker]
    assert job.worker.endswith(":1")


def test_what_a_handler_does_to_its_job_object_changes_nothing(run_one, handler):
    @handler
    def meddle(job):
        job.claim_token = None
        job.attempts = 99
        job.max_attempts = 1
        job.worker = "nobody"
        job.started_at = None
        job.status = JobStatus.FAILED
        job.type = "test.echo"
        job.pk = uuid4()
        if Job.objects.get(type="meddle").attempts < 2:
            raise ValueError("once")
        return "done"

    job = run_one("meddle")

    assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "done", 2)
    assert (job.type, job.max_attempts) == ("meddle", 3)
    assert outcomes(job) == [SettleOutcome.RETRY_SCHEDULED]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "result is nan"),
        ({"a": [1, -math.inf]}, "result.a[1] is -inf"),
        (object(), "result is of type object, which JSON cannot hold"),
        ({"price": Decimal(1)}, "result.price is of type Decimal"),
        ({1: "one"}, "result has the key 1; JSON keys are strings"),
        ("nul \0", "result contains a NUL character"),
        (["\ud800"], "result[0] contains the lone surrogate"),
        (2**3000, "result is an integer of over"),
        (b"bytes", "result is of type bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("result") else "",
)
def test_a_result_that_cannot_be_stored_fails_the_attempt(run_one, handler, jobqueue, value, words):
    jobqueue(MAX_ATTEMPTS=1)

    @handler
    def give(job):
        return value

    job = run_one("give")

    assert (job.status, job.result) == (JobStatus.FAILED, None)
    assert job.last_error.startswith(f"InvalidResult: {words}")


def test_a_result_that_contains_itself_fails_the_attempt(run_one, handler):
    @handler(max_attempts=1)
    def give(job):
        result = []
        result.append(result)
        return result

    assert run_one("give").last_error.startswith("InvalidResult: result[0][0]")


def test_a_result_that_is_too_large_fails_the_attempt_with_the_limit(run_one, handler, jobqueue):
    jobqueue(MAX_RESULT_BYTES=1000)

    @handler(max_attempts=1)
    def give(job):
        return "é" * 500

    job = run_one("give")

    assert (job.status, job.result) == (JobStatus.FAILED, None)
    assert "result has 1,002 bytes; expected at most 1,000" in job.last_error


def test_jobs_of_one_slot_run_by_priority_and_then_by_age(drain, notebook):
    jobs = [
        Job.objects.enqueue("test.note", notebook.payload, priority=priority)
        for priority in (5, 0, -3, 0, 5)
    ]

    drain()

    assert notebook.ids() == [str(jobs[index].pk) for index in (2, 1, 3, 0, 4)]


def test_a_scheduled_job_runs_once_its_time_has_come(pools, notebook):
    later = Job.objects.enqueue("test.note", notebook.payload, delay=3600)
    soon = Job.objects.enqueue("test.note", notebook.payload, delay=0.1)
    pools().start()

    eventually(notebook.ids, "the job that was due did not run")

    eventually(lambda: Job.objects.terminal().filter(pk=soon.pk).exists(), "it was not settled")
    soon.refresh_from_db()
    assert soon.started_at >= soon.ready_at > soon.created_at
    assert notebook.ids() == [str(soon.pk)]
    later.refresh_from_db()
    assert (later.status, later.attempts) == (JobStatus.PENDING, 0)
