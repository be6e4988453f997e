"""OpenTelemetry, off by default: `OTEL_ENABLED=true` prints spans to standard error."""

import sys

from django.core.exceptions import ImproperlyConfigured


def start() -> None:
    """Trace requests and jobs, and print each span when it ends. Nothing leaves the machine."""
    try:
        from opentelemetry import trace
        from opentelemetry.instrumentation.django import DjangoInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    except ImportError:
        raise ImproperlyConfigured(
            'OTEL_ENABLED is "true", and OpenTelemetry is not installed; '
            "run pip install -e '.[demo,telemetry]' here, or leave OTEL_ENABLED out."
        ) from None
    provider = TracerProvider(resource=Resource.create({"service.name": "example_project"}))
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
    trace.set_tracer_provider(provider)
    DjangoInstrumentor().instrument()
