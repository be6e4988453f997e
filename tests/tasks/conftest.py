import pytest
from django.test import override_settings

from django_jobqueue import registry
from django_jobqueue.task_backend import finished, learning, site

OURS = "django_jobqueue.backends.JobQueueBackend"

_before = registry.handlers()
with override_settings(TASKS={"default": {"BACKEND": OURS, "QUEUES": []}}):
    # A module of tasks is read by the backend that is configured when it is imported.
    from tests.taskapp import elsewhere, tasks  # noqa: F401
registry._handlers.clear()
registry._handlers.update(_before)
finished.disconnect()


@pytest.fixture(autouse=True)
def task_site(settings):
    """Use the queue for tasks; call it with the parameters of aliases for others.

    Nothing of it is left behind: the receiver would slow down what other tests measure.
    """
    before = registry.handlers()

    def use(**aliases):
        settings.TASKS = {
            alias: {"BACKEND": OURS, "QUEUES": [], **params} for alias, params in aliases.items()
        }

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.taskapp"]
    use(default={})
    site.discover_tasks()
    yield use
    finished.disconnect()
    learning.forget()
    registry._handlers.clear()
    registry._handlers.update(before)
