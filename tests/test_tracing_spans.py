import asyncio
import logging
import subprocess
import sys
import threading
from types import SimpleNamespace
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from opentelemetry import context, trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from django_jobqueue import __version__
from django_jobqueue.models import Job
from django_jobqueue.states import ErrorReport, Executor, SettleOutcome
from django_jobqueue.tracing import current_traceparent, process_span
from tests.pages import ROOT, table_rows

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
SPAN_ID = 0xB7AD6B7169203331
TRACEPARENT = f"00-{TRACE_ID:032x}-{SPAN_ID:016x}-01"
REPORT = ErrorReport("reports.errors.NoPaper", "the printer is empty")


@pytest.fixture
def exporter(monkeypatch):
    return provide(monkeypatch)


@pytest.fixture
def clock(monkeypatch):
    """The clocks of the tracing module, in nanoseconds; a test moves them."""

    class Clock:
        EPOCH = 1_800_000_000_000_000_000
        now = 0

        def monotonic_ns(self):
            return self.now

        def time_ns(self):
            return self.EPOCH + self.now

    clock = Clock()
    monkeypatch.setattr("django_jobqueue.tracing.time", clock)
    return clock


def provide(monkeypatch, *processors, **options):
    """Make a provider the global one; return what its spans are exported to."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False, **options)
    for processor in processors:
        provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # The public setter works once a process; each test brings its own.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def a_job(**changes):
    """A job as it was claimed; no span asks the database."""
    return Job(
        **{
            "id": UUID(int=7),
            "type": "reports.build",
            "queue": "paper",
            "attempts": 2,
            "executor": Executor.SERVER,
            "org_id": None,
            "trace_context": TRACEPARENT,
        }
        | changes
    )


def run(job, handler=lambda: None, *, outcome=SettleOutcome.SUCCEEDED, error=None):
    """Do what an executor does: run, decide, settle, tell the span."""
    span = process_span(job)
    try:
        with span:
            return handler()
    finally:
        span.end(outcome, error)


def named(exporter, name):
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return span


def current_span_id():
    return trace.get_current_span().get_span_context().span_id


def record(name):
    with trace.get_tracer("tests").start_as_current_span(name):
        pass


class TestShape:
    def test_a_success(self, exporter):
        run(a_job())

        (span,) = exporter.get_finished_spans()
        assert span.name == "job.process reports.build"
        assert span.kind is SpanKind.CONSUMER
        assert span.status.status_code is StatusCode.UNSET
        assert span.events == ()
        assert span.instrumentation_scope.name == "django_jobqueue"
        assert span.instrumentation_scope.version == __version__
        assert dict(span.attributes) == {
            "job.id": str(UUID(int=7)),
            "job.type": "reports.build",
            "job.attempts": 2,
            "job.executor": "server",
            "job.outcome": "succeeded",
            "messaging.system": "django_jobqueue",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "paper",
            "messaging.message.id": str(UUID(int=7)),
        }

    def test_the_tenant_is_named_when_there_is_one(self, exporter):
        run(a_job(org_id="acme"))

        (span,) = exporter.get_finished_spans()
        assert span.attributes["org.id"] == "acme"

    @pytest.mark.parametrize(
        "outcome",
        [SettleOutcome.FAILED, SettleOutcome.RETRY_SCHEDULED, SettleOutcome.WRITE_FAILED],
    )
    def test_a_failure_has_its_outcome_as_message(self, exporter, outcome):
        run(a_job(), outcome=outcome, error=REPORT)

        (span,) = exporter.get_finished_spans()
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == outcome.value
        assert span.attributes["job.outcome"] == outcome.value
        assert span.attributes["error.type"] == "reports.errors.NoPaper"

    def test_a_success_that_could_not_be_written_is_a_failure_of_its_own_type(self, exporter):
        run(a_job(), outcome=SettleOutcome.WRITE_FAILED)

        (span,) = exporter.get_finished_spans()
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"] == "write-failed"

    @pytest.mark.parametrize(
        "outcome",
        [
            SettleOutcome.RATE_LIMIT_DEFERRED,
            SettleOutcome.CLAIM_LOST,
            SettleOutcome.RELEASED,
            SettleOutcome.CANCELLED,
        ],
    )
    def test_other_outcomes_are_no_error(self, exporter, outcome):
        run(a_job(), outcome=outcome, error=REPORT)

        (span,) = exporter.get_finished_spans()
        assert span.status.status_code is StatusCode.UNSET
        assert span.attributes["job.outcome"] == outcome.value
        assert "error.type" not in span.attributes

    def test_what_an_error_says_does_not_leave_the_database(self, exporter):
        def handler():
            raise ValueError("a secret")

        with pytest.raises(ValueError, match="a secret"):
            run(a_job(), handler, outcome=SettleOutcome.FAILED, error=REPORT)

        assert "secret" not in exporter.get_finished_spans()[0].to_json()

    def test_a_sampler_sees_what_is_known_at_the_start(self, monkeypatch):
        seen = []

        class Sampler(sampling.Sampler):
            def should_sample(self, parent_context, trace_id, name, kind, attributes, links):
                seen.append(dict(attributes))
                return sampling.SamplingResult(sampling.Decision.DROP)

            def get_description(self):
                return "drops"

        exporter = provide(monkeypatch, sampler=Sampler())

        run(a_job())

        assert exporter.get_finished_spans() == ()
        assert seen[0]["job.type"] == "reports.build"

    def test_the_page_lists_every_attribute_and_every_error(self, exporter):
        page = ROOT / "docs" / "tracing.md"
        outcomes = {row[0]: row[1] for row in table_rows(page, "Outcome")}
        attributes = {row[0] for row in table_rows(page, "Attribute")}

        for name in outcomes:
            run(a_job(org_id="acme"), outcome=SettleOutcome(name), error=REPORT)

        spans = exporter.get_finished_spans()
        assert {name for span in spans for name in span.attributes} == attributes
        for span, status in zip(spans, outcomes.values(), strict=True):
            assert span.status.status_code.name == status.partition(":")[0].upper()


class TestParent:
    def test_it_is_a_child_of_the_stored_traceparent(self, exporter):
        run(a_job())

        (span,) = exporter.get_finished_spans()
        assert span.context.trace_id == TRACE_ID
        assert span.parent.span_id == SPAN_ID

    @pytest.mark.parametrize(
        "stored", [None, "", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
    )
    def test_without_a_valid_one_it_is_a_root(self, exporter, stored):
        run(a_job(trace_context=stored))

        (span,) = exporter.get_finished_spans()
        assert span.parent is None

    @pytest.mark.parametrize("stored", [None, TRACEPARENT])
    def test_the_ambient_span_is_never_the_parent(self, exporter, stored):
        with trace.get_tracer("tests").start_as_current_span("ambient"):
            ambient = current_span_id()
            run(a_job(trace_context=stored))
            assert current_span_id() == ambient

        span = named(exporter, "job.process reports.build")
        assert span.parent is None if stored is None else span.parent.span_id == SPAN_ID
        assert span.context.trace_id != named(exporter, "ambient").context.trace_id

    def test_retries_are_siblings(self, exporter):
        run(a_job(attempts=1), outcome=SettleOutcome.RETRY_SCHEDULED, error=REPORT)
        run(a_job(attempts=2))

        first, second = exporter.get_finished_spans()
        assert first.parent.span_id == second.parent.span_id == SPAN_ID
        assert first.context.span_id != second.context.span_id
        assert (first.attributes["job.attempts"], second.attributes["job.attempts"]) == (1, 2)

    def test_request_enqueue_and_process_are_one_trace(self, exporter):
        with trace.get_tracer("tests").start_as_current_span("request"):
            stored = current_traceparent()
        run(a_job(trace_context=stored), lambda: record("query"))

        request, process, query = (
            named(exporter, name) for name in ("request", "job.process reports.build", "query")
        )
        assert process.parent.span_id == request.context.span_id
        assert query.parent.span_id == process.context.span_id
        assert {span.context.trace_id for span in (request, process, query)} == {
            request.context.trace_id
        }


class TestCurrent:
    def test_a_sync_handlers_spans_are_children(self, exporter):
        run(a_job(), lambda: record("inner"))

        process = named(exporter, "job.process reports.build")
        assert named(exporter, "inner").parent.span_id == process.context.span_id

    def test_it_is_current_no_longer_after_the_handler(self, exporter):
        span = process_span(a_job())
        with span:
            inside = current_span_id()
        after = current_span_id()
        span.end(SettleOutcome.SUCCEEDED)

        assert inside == exporter.get_finished_spans()[0].context.span_id
        assert after == 0

    @pytest.mark.parametrize("error", [ValueError, SystemExit, StopIteration, KeyboardInterrupt])
    def test_it_is_current_no_longer_after_a_handler_that_raised(self, exporter, error):
        def handler():
            raise error

        with pytest.raises(error):
            run(a_job(), handler)

        assert current_span_id() == 0

    def test_an_async_handlers_spans_are_children(self, exporter):
        """The coroutine runs in another thread, on a loop, and calls back into threads."""

        async def handler():
            record("before")
            await asyncio.sleep(0)
            record("after")
            await sync_to_async(record)("in a thread")
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.to_thread(record, "in a task"))

        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            run(a_job(), lambda: asyncio.run_coroutine_threadsafe(handler(), loop).result(10))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

        process = named(exporter, "job.process reports.build")
        for name in ("before", "after", "in a thread", "in a task"):
            assert named(exporter, name).parent.span_id == process.context.span_id

    def test_jobs_on_one_loop_keep_their_spans_apart(self, exporter):
        both = asyncio.Barrier(2)

        async def handler(name):
            span = process_span(a_job(type=name))
            with span:
                await both.wait()
                record(f"inner {name}")
                await both.wait()
            span.end(SettleOutcome.SUCCEEDED)

        async def main():
            await asyncio.gather(handler("one"), handler("two"))

        asyncio.run(main())

        for name in ("one", "two"):
            process = named(exporter, f"job.process {name}")
            assert named(exporter, f"inner {name}").parent.span_id == process.context.span_id

    def test_a_handlers_enqueue_stores_its_span(self, exporter):
        stored = run(a_job(), current_traceparent)

        (span,) = exporter.get_finished_spans()
        assert stored == f"00-{TRACE_ID:032x}-{span.context.span_id:016x}-01"

    def test_without_an_sdk_a_handlers_enqueue_carries_the_trace_on(self):
        assert run(a_job(), current_traceparent) == TRACEPARENT

    def test_async_to_sync_inside_keeps_it(self, exporter):
        async def inner():
            record("inner")

        run(a_job(), async_to_sync(inner))

        process = named(exporter, "job.process reports.build")
        assert named(exporter, "inner").parent.span_id == process.context.span_id


class TestEnd:
    def test_the_wait_for_the_outcome_is_not_part_of_it(self, exporter, clock):
        span = process_span(a_job())
        with span:
            clock.now += 300
        clock.now += 5_000
        span.end(SettleOutcome.SUCCEEDED)

        (finished,) = exporter.get_finished_spans()
        assert (finished.start_time, finished.end_time) == (clock.EPOCH, clock.EPOCH + 300)

    def test_a_stop_comes_before_the_end_of_the_handler(self, exporter, clock):
        span = process_span(a_job())
        with span:
            clock.now += 300
            span.stop()
            clock.now += 5_000
        span.end(SettleOutcome.RETRY_SCHEDULED, REPORT)

        assert exporter.get_finished_spans()[0].end_time == clock.EPOCH + 300

    def test_it_is_exported_only_when_the_outcome_is_known(self, exporter):
        span = process_span(a_job())
        with span:
            pass
        assert exporter.get_finished_spans() == ()

        span.end(SettleOutcome.SUCCEEDED)

        assert len(exporter.get_finished_spans()) == 1

    def test_the_first_end_counts(self, exporter, caplog):
        span = process_span(a_job())
        with span:
            pass
        span.end(SettleOutcome.FAILED, REPORT)
        span.end(SettleOutcome.SUCCEEDED)

        (finished,) = exporter.get_finished_spans()
        assert finished.attributes["job.outcome"] == "failed"
        assert caplog.records == []

    def test_a_job_that_never_reached_its_handler_has_a_span_too(self, exporter):
        process_span(a_job()).end(SettleOutcome.FAILED, REPORT)

        (finished,) = exporter.get_finished_spans()
        assert finished.status.status_code is StatusCode.ERROR

    def test_a_timeout_ends_it_from_another_thread(self, exporter, clock, caplog):
        started, go_on = threading.Event(), threading.Event()
        spans = []

        def handler():
            with process_span(a_job()) as span:
                spans.append(span)
                started.set()
                go_on.wait(10)
                record("late")
            spans.append(current_span_id())

        thread = threading.Thread(target=handler)
        thread.start()
        assert started.wait(10)
        clock.now += 300
        spans[0].stop()
        clock.now += 5_000
        go_on.set()
        thread.join()
        spans[0].end(SettleOutcome.RETRY_SCHEDULED, REPORT)

        process = named(exporter, "job.process reports.build")
        late = named(exporter, "late")
        assert process.status.description == "retry-scheduled"
        assert process.end_time == clock.EPOCH + 300
        assert late.parent.span_id == process.context.span_id
        assert spans[1] == 0
        assert caplog.records == []

    def test_two_threads_may_end_it_at_once(self, exporter):
        for _ in range(50):
            exporter.clear()
            span = process_span(a_job())
            start = threading.Barrier(2)

            def end(span=span, start=start):
                start.wait()
                span.end(SettleOutcome.SUCCEEDED)

            threads = [threading.Thread(target=end) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(exporter.get_finished_spans()) == 1


class Broken(SpanProcessor):
    """Raises where it is told to."""

    def __init__(self, *places, error=RuntimeError):
        self.places = places
        self.error = error

    def on_start(self, span, parent_context=None):
        self.break_at("on_start")

    def on_end(self, span):
        self.break_at("on_end")

    def break_at(self, place):
        if place in self.places:
            raise self.error(place)


class BrokenSpan(trace.NonRecordingSpan):
    """Raises whatever is asked of it."""

    def __init__(self, error=RuntimeError):
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.error = error
        self.asked = []

    def set_attribute(self, key, value):
        self.asked.append(key)
        raise self.error(key)

    def set_status(self, status, description=None):
        self.asked.append("status")
        raise self.error("status")

    def end(self, end_time=None):
        self.asked.append("end")
        raise self.error("end")


ERRORS = [RuntimeError, SystemExit]


class TestNeverFailsAJob:
    @pytest.mark.parametrize("error", ERRORS)
    @pytest.mark.parametrize("place", ["on_start", "on_end"])
    def test_a_span_processor_that_raises(self, monkeypatch, caplog, place, error):
        provide(monkeypatch, Broken(place, error=error))

        assert run(a_job(), lambda: 42) == 42

        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert current_span_id() == 0

    def test_without_a_span_the_handler_still_continues_the_trace(self, monkeypatch):
        provide(monkeypatch, Broken("on_start"))

        assert run(a_job(), current_traceparent) == TRACEPARENT

    @pytest.mark.parametrize("error", ERRORS)
    def test_a_span_that_raises_is_still_told_everything_and_ended(
        self, monkeypatch, caplog, error
    ):
        span = BrokenSpan(error)
        tracer = SimpleNamespace(start_span=lambda *args, **options: span)
        monkeypatch.setattr(
            trace, "_TRACER_PROVIDER", SimpleNamespace(get_tracer=lambda *args, **options: tracer)
        )
        caplog.set_level(logging.WARNING, "django_jobqueue.tracing")

        assert run(a_job(), lambda: 42, outcome=SettleOutcome.FAILED, error=REPORT) == 42

        assert span.asked == ["job.outcome", "error.type", "status", "end"]
        assert len(caplog.records) == 1

    @pytest.mark.parametrize("error", ERRORS)
    def test_a_provider_that_raises(self, monkeypatch, error):
        def raises(*args, **options):
            raise error("no tracer")

        for provider in (
            SimpleNamespace(get_tracer=raises),
            SimpleNamespace(get_tracer=lambda *args, **options: SimpleNamespace(start_span=raises)),
            SimpleNamespace(),
        ):
            monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
            assert run(a_job(), lambda: 42) == 42

    def test_a_tracer_that_answers_nonsense(self, monkeypatch):
        tracer = SimpleNamespace(start_span=lambda *args, **options: "a span, honestly")
        monkeypatch.setattr(
            trace, "_TRACER_PROVIDER", SimpleNamespace(get_tracer=lambda *args, **options: tracer)
        )

        assert run(a_job(), lambda: 42) == 42

    @pytest.mark.parametrize("step", ["attach", "detach"])
    def test_a_context_that_raises(self, monkeypatch, step):
        def raises(*args):
            raise RuntimeError(step)

        monkeypatch.setattr(f"opentelemetry.context.{step}", raises)
        try:
            assert run(a_job(), lambda: 42) == 42
        finally:
            monkeypatch.undo()
            # What could not be detached stays; later tests need a clean context.
            context.attach(context.Context())

    def test_a_broken_job_row(self, exporter):
        assert run(SimpleNamespace(), lambda: 42) == 42

    def test_the_errors_of_the_handler_are_its_own(self, monkeypatch):
        provide(monkeypatch, Broken("on_start", "on_end"))

        def handler():
            raise ValueError("the handler's")

        with pytest.raises(ValueError, match="the handler's"):
            run(a_job(), handler)


def test_the_package_imports_no_sdk():
    program = (
        "import sys, django; django.setup(); import django_jobqueue.tracing; "
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "[]"
