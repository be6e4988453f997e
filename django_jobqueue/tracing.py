"""OpenTelemetry, never raising: a broken tracer must not cost a job.

Two places: an enqueue stores the active span's traceparent on the row, and an attempt gets a span
of its own that is a child of it. Only the API is used: without an SDK all of this does nothing.
"""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from . import __version__
from .job_context import CurrentJob, log_fields
from .logs import get_logger
from .states import ErrorReport, SettleOutcome

if TYPE_CHECKING:
    from .models import Job

logger = get_logger(__name__)

Answer = TypeVar("Answer")

PROPAGATOR = TraceContextTextMapPropagator()
TRACEPARENT = "traceparent"
TRACEPARENT_LENGTH = 55
"""Of a version 00 traceparent, the only version there is (W3C Trace Context, section 3.2)."""

SYSTEM = "django_jobqueue"
OPERATION = "process"

FAILURES = frozenset(
    {SettleOutcome.FAILED, SettleOutcome.RETRY_SCHEDULED, SettleOutcome.WRITE_FAILED}
)
"""The outcomes that make a span an error. A deferral is the provider's wish, not a fault."""


def current_traceparent() -> str | None:
    """Return the active span's W3C traceparent, or None when there is no valid one."""
    try:
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier)
        traceparent = carrier.get(TRACEPARENT)
    except Exception:
        logger.warning("The trace context could not be read; enqueueing without it", exc_info=True)
        return None
    return traceparent if traceparent and len(traceparent) == TRACEPARENT_LENGTH else None


class ProcessSpan:
    """The span of one attempt, from just before its handler until its outcome is known.

    Made when the attempt starts, by `process_span`. As a context manager it is current for the
    handler, sync or async, and its block ends with the handler:

        span = process_span(job)
        with span:
            result = handler.process(job)
        ...                                    # decide, settle
        span.end(outcome, report)

    The span covers the handler, not the wait for the database: it ends at the first of the
    block's end, `stop()` and `end()`, and it is sent by `end()`. `stop()` and `end()` may be
    called from any thread, and repeating them changes nothing. Nothing here raises.
    """

    def __init__(self, job: "Job") -> None:
        self._complained = False
        self._job = job
        self._lock = threading.Lock()
        self._started = time.monotonic_ns()
        self._start_time = time.time_ns()
        self._end_time: int | None = None
        self._token: Any = None
        # Not the ambient context: whatever is current in the worker did not cause this job.
        parent = self._safely("read the parent", lambda: parent_of(job)) or Context()
        self._span = self._safely("start", lambda: self._start(job, parent))
        within = self._safely("carry", lambda: within_span(self._span, parent))
        self._context = parent if within is None else within

    def __enter__(self) -> Self:
        """Make the span current in this context of execution."""
        self._token = self._safely("attach", lambda: otel_context.attach(self._context))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make it current no longer; the handler has ended."""
        self.stop()
        token, self._token = self._token, None
        if token is not None:
            self._safely("detach", lambda: otel_context.detach(token))

    def stop(self) -> None:
        """Note that the attempt is over now; the first call counts."""
        with self._lock:
            if self._end_time is None:
                self._end_time = self._start_time + time.monotonic_ns() - self._started

    @property
    def seconds(self) -> float | None:
        """How long the attempt took; None while it runs."""
        return None if self._end_time is None else (self._end_time - self._start_time) / 1e9

    def end(self, outcome: SettleOutcome, error: ErrorReport | None = None) -> None:
        """End the span with the outcome of the attempt and what went wrong; first call counts."""
        self.stop()
        with self._lock:
            span, self._span = self._span, None
        if span is None:
            return
        word = outcome.value
        self._safely("describe", lambda: span.set_attribute("job.outcome", word))
        if outcome in FAILURES:
            cause = error.exception_class if error else word
            self._safely("describe", lambda: span.set_attribute("error.type", cause))
            self._safely("describe", lambda: span.set_status(Status(StatusCode.ERROR, word)))
        self._safely("end", lambda: span.end(end_time=self._end_time))

    def _start(self, job: "Job", parent: Context) -> Span:
        return trace.get_tracer(SYSTEM, __version__).start_span(
            f"job.process {job.type}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=attributes_of(job),
            start_time=self._start_time,
        )

    def _safely(self, verb: str, step: Callable[[], Answer]) -> Answer | None:
        """Do a step; None when it raised. Only a job's first complaint is a warning."""
        try:
            return step()
        except BaseException:  # A span processor is the site's code.
            level = logging.DEBUG if self._complained else logging.WARNING
            self._complained = True
            logger.log(
                level,
                "Tracing failed to %s a job's span; going on",
                verb,
                exc_info=True,
                extra=self._log_fields(),
            )
            return None

    def _log_fields(self) -> dict[str, Any] | None:
        """Return which job a complaint is about; None of a row so broken that it cannot say."""
        try:
            return log_fields(*CurrentJob.of(self._job))
        except Exception:  # noqa: BLE001 (the complaint matters more)
            return None


def process_span(job: "Job") -> ProcessSpan:
    """Start the span of an attempt at a claimed job."""
    return ProcessSpan(job)


def parent_of(job: "Job") -> Context:
    """Return the context that enqueued the job; an empty one when none is stored or valid."""
    carrier = {TRACEPARENT: job.trace_context} if job.trace_context else {}
    return PROPAGATOR.extract(carrier, context=Context())


def within_span(span: Span | None, parent: Context) -> Context:
    """Return the context in which the span is current.

    Without a real span (none was made, or by an old API without an SDK) the handler still
    continues the trace of the enqueue.
    """
    if span is None or not span.get_span_context().is_valid:
        return parent
    return trace.set_span_in_context(span, parent)


def attributes_of(job: "Job") -> dict[str, Any]:
    """Return what is known of an attempt when it starts."""
    attributes = {
        "job.id": str(job.pk),
        "job.type": job.type,
        "job.attempts": job.attempts,
        "job.executor": str(job.executor),
        "messaging.system": SYSTEM,
        "messaging.operation.name": OPERATION,
        "messaging.operation.type": OPERATION,
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.pk),
    }
    return attributes | {"org.id": job.org_id} if job.org_id else attributes
