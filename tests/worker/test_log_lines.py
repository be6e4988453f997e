"""What a working pool writes to the log: whose job a line is about, and never what is secret."""

import logging
import sys
import threading
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from django_jobqueue import PermanentError, RateLimitError
from django_jobqueue.job_context import LOG_FIELDS, JobContextFilter, current_job
from django_jobqueue.masking import MASK
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import JobStatus


def wait_until(true, seconds=30):
    pause = threading.Event()
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        pause.wait(0.01)


MARKER = "zebra-4711"
SECRET = "hunter2"

own = logging.getLogger("site.handlers")


@pytest.fixture
def lines(caplog):
    """Every record of the package and of the handlers, as a site's log handler sees it."""
    caplog.set_level(logging.DEBUG, "django_jobqueue")
    caplog.set_level(logging.DEBUG, "site.handlers")
    marking = JobContextFilter()
    caplog.handler.addFilter(marking)
    yield caplog
    caplog.handler.removeFilter(marking)


def of(lines, name):
    return [record for record in lines.records if record.name == name]


def fields(record):
    return {field: getattr(record, field) for field in LOG_FIELDS}


def expected(job, attempt=1):
    worker = Job.objects.get(pk=job.pk).worker
    return {
        "job_id": str(job.pk),
        "job_type": job.type,
        "job_attempt": attempt,
        "job_worker": worker,
        "job_queue": job.queue,
    }


class TestAHandlersOwnLines:
    def test_carry_the_job_and_no_other_of_the_same_slot(self, handler, drain, lines):
        @handler
        def talks(job):
            own.info("talking")

        jobs = [Job.objects.enqueue("talks") for _ in range(3)]
        drain(1)

        said = of(lines, "site.handlers")
        assert [fields(record) for record in said] == [expected(job) for job in jobs]

    def test_carry_the_job_in_async_code_and_its_threads(self, handler, drain, lines):
        def in_thread():
            own.info("from a thread")

        @handler
        async def talks(job):
            own.info("from the loop")
            await sync_to_async(in_thread)()
            await sync_to_async(in_thread, thread_sensitive=False)()

        jobs = [Job.objects.enqueue("talks", queue="slow") for _ in range(2)]
        drain(2)

        for job in jobs:
            said = [r for r in of(lines, "site.handlers") if r.job_id == str(job.pk)]
            assert [r.message for r in said] == ["from the loop"] + 2 * ["from a thread"]
            assert {str(fields(r)) for r in said} == {str(expected(job))}

    def test_carry_their_own_job_after_a_timeout(self, handler, drain, lines, meeting):
        goes_on = threading.Event()

        @handler(max_runtime=timedelta(seconds=0.3), max_attempts=1)
        def lingers(job):
            goes_on.wait(30)
            own.info("late")

        @handler
        def follows(job):
            own.info("next")
            goes_on.set()

        late, following = Job.objects.enqueue("lingers"), Job.objects.enqueue("follows")
        drain(1)
        wait_until(lambda: len(of(lines, "site.handlers")) == 2)

        said = {r.message: r.job_id for r in of(lines, "site.handlers")}
        assert said == {"late": str(late.pk), "next": str(following.pk)}

    def test_know_the_job_without_logging(self, handler, run_one):
        seen = []

        @handler
        def looks(job):
            seen.append(current_job())
            job.type = "changed by the handler"

        job = run_one("looks")

        assert (seen[0].id, seen[0].type, seen[0].attempt) == (job.pk, "looks", 1)
        assert current_job() is None


def test_each_attempt_has_a_line_for_its_start_and_its_end(handler, run_one, lines):
    @handler(max_attempts=2)
    def fails(job):
        raise ValueError("no paper")

    job = run_one("fails")

    said = of(lines, "django_jobqueue.worker.events")
    assert [(r.msg, r.levelname, r.job_attempt, getattr(r, "outcome", None)) for r in said] == [
        ("Job %s (%s) attempt %d starts", "DEBUG", 1, None),
        ("Job %s (%s) attempt %d: %s%s", "WARNING", 1, "retry-scheduled"),
        ("Job %s (%s) attempt %d starts", "DEBUG", 2, None),
        ("Job %s (%s) attempt %d: %s%s", "ERROR", 2, "failed"),
    ]
    assert {r.job_id for r in said} == {str(job.pk)}
    assert "ValueError: no paper" in said[1].getMessage()


def test_no_line_shows_a_payload(  # noqa: C901 (a handler for every way to end)
    handler, pools, drain, lines, jobqueue, meeting
):
    jobqueue(
        POLL_INTERVAL=0.05,
        RETRY_BASE=0.01,
        RETRY_MAX=0.02,
        RATE_LIMIT_BASE=0.01,
        RATE_LIMIT_MAX=0.02,
        RATE_LIMIT_MAX_HITS=1,
        REAPER_INTERVAL=0.05,
        LEASE_CAP=15,
    )
    leaving = threading.Event()

    @handler
    def succeeds(job):
        return job.payload

    @handler(max_attempts=2)
    def fails(job):
        raise ValueError("no paper")

    @handler
    def refuses(job):
        raise PermanentError("not ever")

    @handler
    def hurries(job):
        raise RateLimitError(retry_after=0.01)

    @handler
    def returns_nonsense(job):
        return object()

    @handler
    def is_refused(job):
        job.result = None
        return {"n": "x" * 10}

    @handler(max_runtime=timedelta(seconds=0.2), max_attempts=1)
    def lingers(job):
        leaving.wait(20)

    @handler
    def stays(job):
        leaving.wait(20)

    @handler(max_attempts=1)
    def breaks_a_constraint(job):
        Job.objects.filter(pk=job.pk).update(status="nonsense")

    @handler
    async def awaits(job):
        raise ValueError("no ink")

    payload = {"marker": MARKER, "list": [MARKER]}
    names = [
        "succeeds",
        "fails",
        "refuses",
        "hurries",
        "returns_nonsense",
        "is_refused",
        "lingers",
        "breaks_a_constraint",
        "awaits",
        "unknown.type",
    ]
    for name in names:
        Job.objects.enqueue(name, payload)
    drain(2)
    dead = Job.objects.enqueue("stays", payload)
    Job.objects.filter(pk=dead.pk).update(
        status=JobStatus.RUNNING,
        claim_token=dead.pk,
        attempts=1,
        worker="gone:1:1",
        lease_seconds=0.1,
        lease_expires_at=dead.created_at,
        started_at=dead.created_at,
        max_attempts=3,
    )
    pool = pools(1)
    pool.start()
    wait_until(lambda: pool.busy)
    assert pool.stop(grace=0) == 1
    leaving.set()

    outcomes = {getattr(r, "outcome", None) for r in lines.records}
    assert outcomes >= {"succeeded", "failed", "retry-scheduled", "rate-limit-deferred", "released"}
    assert [r for r in lines.records if "was reaped" in r.msg]
    assert len(lines.records) > 15
    shown = [str(vars(record)) for record in lines.records]
    assert [line for line in shown if MARKER in line] == []


@pytest.fixture
def careless(handler):
    """A handler, sync and async, whose errors tell what they should not."""

    def fail(job):
        try:
            int(f"password={SECRET}")
        except ValueError as cause:
            raise ValueError(f"cannot reach postgres://bob:{SECRET}@db/site") from cause

    @handler(max_attempts=1)
    def careless(job):
        fail(job)

    @handler(max_attempts=1)
    async def careless_async(job):
        fail(job)


@pytest.mark.parametrize("job_type", ["careless", "careless_async"])
def test_no_line_and_no_span_shows_a_secret_of_an_error(
    careless, run_one, lines, monkeypatch, job_type
):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)

    job = run_one(job_type)

    assert [r for r in lines.records if f"postgres://bob:{MASK}@db/site" in r.getMessage()]
    assert SECRET not in lines.text
    assert [r for r in lines.records if SECRET in str(vars(r))] == []
    (span,) = exporter.get_finished_spans()
    assert SECRET not in span.to_json()
    # The row keeps it, for those who may see it.
    assert SECRET in job.last_error
    assert SECRET in JobAttempt.objects.get(job=job).traceback


def test_the_threads_of_a_failing_part_show_no_secret(handler, run_one, lines, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError(f"token={SECRET}")

    @handler(max_attempts=1)
    def fails(job):
        raise ValueError

    monkeypatch.setattr("django_jobqueue.worker.execution.decide", broken)
    run_one("fails")

    (record,) = [r for r in lines.records if r.msg == "How job %s ended cannot be judged"]
    assert f"RuntimeError: token={MASK}" in record.exc_text
    assert record.job_type == "fails"
    assert SECRET not in lines.text


def test_loggers_are_named_by_their_modules():
    modules = [module for name, module in sys.modules.items() if name.startswith("django_jobqueue")]
    loggers = {m.__name__: m.logger.name for m in modules if hasattr(m, "logger")}

    assert len(loggers) > 20
    assert {module for module, name in loggers.items() if module != name} == set()
