from django.apps import AppConfig


class HardConfig(AppConfig):
    """An app whose handlers are hard on their worker."""

    name = "tests.testapp.hard"
