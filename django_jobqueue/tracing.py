"""OpenTelemetry, never raising: a broken tracer must not cost a job."""

import logging

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

logger = logging.getLogger(__name__)

PROPAGATOR = TraceContextTextMapPropagator()
TRACEPARENT = "traceparent"
TRACEPARENT_LENGTH = 55
"""Of a version 00 traceparent, the only version there is (W3C Trace Context, section 3.2)."""


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
