"""The app: registers the one handler that is a class."""

from django.apps import AppConfig


class FilesConfig(AppConfig):
    """Functions in `jobs.py` are found by django_jobqueue; a class is registered here."""

    name = "example_project.files"
    label = "files"
    verbose_name = "Files"

    def ready(self) -> None:
        """Register the handler and the receiver."""
        from django_jobqueue import registry

        from . import cleanup
        from .handlers import Checksum

        registry.register(Checksum())
        cleanup.connect()
