"""The project itself as an app: what it does once, when Django starts."""

from django.apps import AppConfig
from django.conf import settings


class ExampleProjectConfig(AppConfig):
    """Starts tracing when it is asked for."""

    name = "example_project"
    verbose_name = "Example project"

    def ready(self) -> None:
        """Run before the middleware is loaded, so that tracing can add its own."""
        if settings.OTEL_ENABLED:
            from . import telemetry

            telemetry.start()
