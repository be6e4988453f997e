"""The app: texts that a task of Django's Tasks framework looks into."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

MISSING = (
    "The page of texts is off: Django has the Tasks framework since 6.0, and the package "
    "django-tasks, which brings it to older versions, is missing."
)
REMEDY = "Run pip install django-tasks."


class TextsConfig(AppConfig):
    """The worker finds the module `tasks` of the app; nothing is registered here."""

    name = "example_project.texts"
    label = "texts"
    verbose_name = "Texts"

    def ready(self) -> None:
        """Say at each start when the framework is missing; everything else works without it."""
        checks.register(check_framework)


def check_framework(**_: Any) -> list[checks.CheckMessage]:
    """Warn when there is no Tasks framework."""
    return [] if settings.TASKS else [checks.Warning(MISSING, hint=REMEDY, id="texts.W001")]
