"""What the check command says about a site with a mistake in it."""

from io import StringIO

from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from django_jobqueue.models import Job


class JobsElsewhere:
    """A router that sends jobs to one alias."""

    def __init__(self, alias):
        self._alias = alias

    def db_for_write(self, model, **hints):
        return self._alias if model is Job else None


def jobs_on(alias):
    return override_settings(DATABASE_ROUTERS=[JobsElsewhere(alias)])


def checked(*options, **more):
    """Return what `manage.py check` prints, whether it fails or not.

    Since Django 6.1 its own checks of models ask every database unless told otherwise.
    """
    if not any("--database" in option for option in options):
        more.setdefault("databases", [])
    output = StringIO()
    try:
        call_command("check", *options, stdout=output, stderr=output, **more)
    except SystemCheckError as error:
        return str(error)
    return output.getvalue()


def ids_in(text):
    """Return our ids in a text, in order, without the prefix."""
    return [
        word.strip("():").removeprefix("django_jobqueue.")
        for word in text.split()
        if word.startswith("(django_jobqueue.")
    ]
