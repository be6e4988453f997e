"""The spans of a real pool: one for each attempt, in the trace of its enqueue."""

import asyncio
import logging
import threading

import pytest
from asgiref.sync import sync_to_async
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from django_jobqueue import PermanentError, RateLimitError, __version__
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.processes import eventually


class Spans:
    """What ended up at the exporter."""

    def __init__(self, exporter):
        self._exporter = exporter

    @property
    def all(self):
        return list(self._exporter.get_finished_spans())

    def of(self, job):
        """Return the spans of a job's attempts, in the order of their start."""
        found = [span for span in self.all if span.attributes.get("job.id") == str(job.pk)]
        return sorted(found, key=lambda span: span.start_time)

    def one(self, job):
        [span] = eventually(lambda: self.of(job), "the span was not sent")
        return span

    def named(self, name):
        [span] = [span for span in self.all if span.name == name]
        return span


def provide(monkeypatch, *processors):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    for processor in processors:
        provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # The public setter works once a process; each test brings its own.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return Spans(exporter)


@pytest.fixture
def spans(monkeypatch):
    return provide(monkeypatch)


def record(name):
    with trace.get_tracer("tests").start_as_current_span(name):
        pass


def request(name, enqueue):
    """Enqueue inside a span, as a view does."""
    with trace.get_tracer("tests").start_as_current_span(name):
        return enqueue()


def ended(*jobs):
    ids = [job.pk for job in jobs]
    return lambda: Job.objects.terminal().filter(pk__in=ids).count() == len(ids)


class TestShape:
    def test_of_a_success(self, spans, drain):
        job = Job.objects.enqueue("test.echo", queue="letters", org_id="acme")
        drain()

        span = spans.one(job)
        assert span.name == "job.process test.echo"
        assert span.kind is SpanKind.CONSUMER
        assert span.parent is None
        assert span.status.status_code is StatusCode.UNSET
        assert span.events == ()
        assert span.links == ()
        assert (span.instrumentation_scope.name, span.instrumentation_scope.version) == (
            "django_jobqueue",
            __version__,
        )
        assert dict(span.attributes) == {
            "job.id": str(job.pk),
            "job.type": "test.echo",
            "job.attempts": 1,
            "job.executor": "server",
            "job.outcome": "succeeded",
            "org.id": "acme",
            "messaging.system": "django_jobqueue",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "letters",
            "messaging.message.id": str(job.pk),
        }

    @pytest.mark.parametrize(
        ("error", "outcome"),
        [
            (PermanentError("never"), SettleOutcome.FAILED),
            (ValueError("not yet"), SettleOutcome.RETRY_SCHEDULED),
        ],
    )
    def test_of_a_failure(self, spans, pools, handler, error, outcome, jobqueue):
        jobqueue(POLL_INTERVAL=0.05, RETRY_BASE=60, RETRY_MAX=60)

        @handler
        def broken(job):
            raise error

        job = Job.objects.enqueue("broken")
        pools().start()

        span = spans.one(job)
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == outcome.value
        assert span.attributes["job.outcome"] == outcome.value
        assert span.attributes["error.type"].rpartition(".")[2] == type(error).__name__
        assert str(error) not in span.to_json()
        assert span.events == ()

    def test_of_a_deferral(self, spans, pools, handler):
        @handler
        def refused(job):
            raise RateLimitError(retry_after=60)

        job = Job.objects.enqueue("refused")
        pools().start()

        span = spans.one(job)
        assert span.attributes["job.outcome"] == "rate-limit-deferred"
        assert span.status.status_code is StatusCode.UNSET
        assert "error.type" not in span.attributes

    @pytest.mark.parametrize("is_async", [False, True])
    def test_of_a_timeout(self, spans, pools, handler, is_async):
        """It ends with the attempt, whatever the handler still does."""
        opened = threading.Event()

        async def slow_on_the_loop(job):
            await asyncio.to_thread(opened.wait, 30)

        options = {"name": "slow", "max_runtime": 0.2, "max_attempts": 1}
        handler(**options)(slow_on_the_loop if is_async else lambda job: opened.wait(30))
        job = Job.objects.enqueue("slow")
        pool = pools()
        pool.start()
        span = spans.one(job)
        opened.set()
        eventually(lambda: pool.abandoned == 0, "the handler runs on")

        assert span.attributes["job.outcome"] == "failed"
        assert span.attributes["error.type"] == "django_jobqueue.exceptions.JobTimeoutError"
        assert span.status.status_code is StatusCode.ERROR
        assert 0.15e9 <= span.end_time - span.start_time < 3e9
        assert len(spans.of(job)) == 1

    def test_of_a_lost_claim(self, spans, pools, meeting):
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools()
        pool.start()
        guest = meeting.guest()
        pool.finish()
        Job.objects.release([Job.objects.get(pk=job.pk).claim])
        guest.let_go()

        span = spans.one(job)
        assert span.attributes["job.outcome"] == "claim-lost"
        assert span.status.status_code is StatusCode.UNSET

    def test_of_a_job_handed_back(self, spans, pools, meeting):
        job = Job.objects.enqueue("test.meet", meeting.payload)
        pool = pools()
        pool.start()
        meeting.guest()
        assert pool.stop(grace=0) == 1

        assert spans.one(job).attributes["job.outcome"] == "released"

    def test_does_not_hold_the_wait_for_the_database(self, spans, run_one, handler):
        handler(name="quick")(lambda job: None)
        job = run_one("quick")

        span = spans.one(job)
        took = (span.end_time - span.start_time) / 1e9
        assert took <= (job.finished_at - job.started_at).total_seconds()


class TestTheTrace:
    def test_request_enqueue_and_attempt_are_one(self, spans, drain):
        job = request("GET /", lambda: Job.objects.enqueue("test.echo"))
        drain()

        parent, span = spans.named("GET /"), spans.one(job)
        assert span.parent.span_id == parent.context.span_id
        assert span.context.trace_id == parent.context.trace_id

    def test_retries_are_siblings(self, spans, drain):
        job = request("GET /", lambda: Job.objects.enqueue("test.fail"))
        drain()

        first, second = spans.of(job)
        parent = spans.named("GET /").context
        assert first.parent.span_id == second.parent.span_id == parent.span_id
        assert first.context.span_id != second.context.span_id
        assert [span.attributes["job.attempts"] for span in (first, second)] == [1, 2]
        assert [span.attributes["job.outcome"] for span in (first, second)] == [
            "retry-scheduled",
            "failed",
        ]

    def test_a_sync_handlers_own_spans_are_children(self, spans, run_one, handler):
        handler(name="work")(lambda job: record("inner"))
        job = run_one("work")

        assert spans.named("inner").parent.span_id == spans.one(job).context.span_id

    def test_an_async_handlers_own_spans_are_children(self, spans, run_one, handler):
        @handler
        async def work(job):
            record("before")
            await asyncio.sleep(0)
            record("after")
            await sync_to_async(record)("in a sync call")
            await asyncio.to_thread(record, "in a thread")
            async with asyncio.TaskGroup() as group:
                group.create_task(sync_to_async(record)("in a task"))

        job = run_one("work")

        span_id = spans.one(job).context.span_id
        for name in ("before", "after", "in a sync call", "in a thread", "in a task"):
            assert spans.named(name).parent.span_id == span_id

    def test_side_by_side_async_handlers_do_not_mix_theirs(self, spans, drain, handler):
        @handler
        async def work(job):
            for _ in range(5):
                await asyncio.sleep(0.001)
                record(str(job.pk))

        jobs = [Job.objects.enqueue("work") for _ in range(8)]
        drain(4)

        for job in jobs:
            inner = [span for span in spans.all if span.name == str(job.pk)]
            assert {span.parent.span_id for span in inner} == {spans.one(job).context.span_id}
            assert len(inner) == 5

    def test_a_job_that_a_handler_enqueues_goes_on_with_it(self, spans, drain, handler):
        handler(name="first")(lambda job: str(Job.objects.enqueue("test.echo").pk))
        first = request("GET /", lambda: Job.objects.enqueue("first"))
        drain()

        first.refresh_from_db()
        second = spans.one(Job.objects.get(pk=first.result))
        assert second.parent.span_id == spans.one(first).context.span_id
        assert second.context.trace_id == spans.named("GET /").context.trace_id

    def test_nothing_is_current_between_two_jobs(self, spans, drain):
        jobs = [Job.objects.enqueue("test.echo") for _ in range(3)]
        drain(1)

        found = [spans.one(job) for job in jobs]
        assert [span.parent for span in found] == [None] * 3
        assert len({span.context.trace_id for span in found}) == 3

    def test_what_is_current_where_the_pool_starts_is_no_parent(self, spans, pools):
        job = Job.objects.enqueue("test.echo")
        request("the start", pools().start)

        assert spans.one(job).parent is None


class Broken(SpanProcessor):
    """Raises wherever it is asked."""

    def __init__(self, *places):
        self.places = places
        self.asked = 0

    def on_start(self, span, parent_context=None):
        if "set_attribute" in self.places:
            span.set_attribute = self.fail
            span.set_status = self.fail
        if "start" in self.places:
            self.fail()

    def on_end(self, span):
        if "end" in self.places:
            self.fail()

    def fail(self, *args, **options):
        self.asked += 1
        raise RuntimeError("the collector is on fire")


class TestABrokenTracer:
    @pytest.mark.parametrize(
        "places", [("start",), ("end",), ("set_attribute",), ("start", "end", "set_attribute")]
    )
    def test_changes_no_outcome(self, monkeypatch, pools, handler, places, caplog):
        broken = Broken(*places)
        provide(monkeypatch, broken)
        opened = threading.Event()
        handler(name="slow", max_runtime=0.2, max_attempts=1)(lambda job: opened.wait(30))
        caplog.set_level(logging.CRITICAL, "django_jobqueue.tracing")
        names = ("test.echo", "test.async", "test.fail", "test.flaky", "test.permanent", "slow")
        # Enqueued where no span is current: a request's own span is not the queue's.
        jobs = {name: Job.objects.enqueue(name, {"n": 1}) for name in names}
        pool = pools(2)
        pool.start()
        eventually(ended(*jobs.values()), "not every job ended")
        opened.set()

        found = dict(Job.objects.values_list("type", "status"))
        assert found == {
            "test.echo": JobStatus.SUCCEEDED,
            "test.async": JobStatus.SUCCEEDED,
            "test.flaky": JobStatus.SUCCEEDED,
            "test.fail": JobStatus.FAILED,
            "test.permanent": JobStatus.FAILED,
            "slow": JobStatus.FAILED,
        }
        attempts = dict(Job.objects.values_list("type", "attempts"))
        assert attempts == dict.fromkeys(names, 1) | {"test.fail": 2, "test.flaky": 2}
        assert Job.objects.get(type="test.echo").result == {"n": 1}
        assert Job.objects.get(type="slow").last_error.startswith("JobTimeoutError")
        assert broken.asked
        assert pool.died() == []

    def test_does_not_hold_an_enqueue(self, monkeypatch):
        def broken():
            raise RuntimeError("no context")

        monkeypatch.setattr(trace, "get_current_span", lambda *args, **options: broken())

        assert Job.objects.enqueue("test.echo").trace_context is None

    test_does_not_hold_an_enqueue = pytest.mark.django_db(test_does_not_hold_an_enqueue)
