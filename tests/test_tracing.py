import pytest
from opentelemetry import context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
    use_span,
)

from django_jobqueue.tracing import TRACEPARENT_LENGTH, current_traceparent


class BrokenSpan(NonRecordingSpan):
    def get_span_context(self):
        raise RuntimeError("broken")


def test_without_a_span_there_is_no_traceparent():
    assert current_traceparent() is None


def test_the_active_span_gives_the_traceparent():
    with TracerProvider().get_tracer("tests").start_as_current_span("request") as span:
        traceparent = current_traceparent()

    ids = span.get_span_context()
    assert traceparent.split("-")[:3] == ["00", f"{ids.trace_id:032x}", f"{ids.span_id:016x}"]
    assert len(traceparent) == TRACEPARENT_LENGTH
    assert current_traceparent() is None


@pytest.mark.parametrize("flags", [TraceFlags.DEFAULT, TraceFlags.SAMPLED])
def test_a_span_that_is_not_sampled_is_a_parent_too(flags):
    span = NonRecordingSpan(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(flags)))

    with use_span(span):
        assert current_traceparent() == f"00-{7:032x}-{8:016x}-{flags:02x}"


def test_an_invalid_span_gives_none():
    with use_span(NonRecordingSpan(SpanContext(0, 0, is_remote=False))):
        assert current_traceparent() is None


def test_a_broken_tracer_gives_none_and_a_warning(caplog):
    token = context.attach(set_span_in_context(BrokenSpan(SpanContext(7, 8, is_remote=False))))
    try:
        assert current_traceparent() is None
    finally:
        context.detach(token)

    assert "The trace context could not be read" in caplog.text
