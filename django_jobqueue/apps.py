"""The app: what happens once every model is loaded."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobQueueConfig(AppConfig):
    """Registers the built-in handlers and the system checks; finds the site's `jobs` modules."""

    name = "django_jobqueue"
    label = "django_jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Discover handlers and register checks; called once by Django."""
        from . import discovery
        from .checks import registered
        from .handlers import purge
        from .task_backend import site

        registered.register()
        purge.register()
        discovery.discover_jobs()
        site.prepare()
