"""A task that got another name, or moved, and keeps the old name for the jobs that still wait."""

import pytest

from django_jobqueue import registry
from django_jobqueue.models import Job
from django_jobqueue.task_backend import learning
from django_jobqueue.testing import drain
from tests.taskapp.framework import default_task_backend

OLD_NAME = "tests.taskapp.tasks.old_name"


@pytest.fixture
def place(monkeypatch):
    """The module, with a name that a test gives a second task."""
    from tests.taskapp import tasks

    monkeypatch.setattr(tasks, "old_name", None, raising=False)
    return tasks


def enqueued(*args):
    return Job.objects.enqueue(OLD_NAME, {"args": args, "kwargs": {}, "backend": "default"})


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "args", "value"), [("add", [1, 2], 3), ("hidden", [4], 8)])
def test_jobs_of_a_name_that_is_kept_beside_the_new_one_run(place, name, args, value):
    from tests.taskapp import elsewhere

    place.old_name = getattr(place, name, None) or getattr(elsewhere, name)
    job = enqueued(*args)

    assert learning.learn(OLD_NAME)
    assert len(drain()) == 1

    result = default_task_backend.get_result(str(job.pk))
    assert (result.return_value, result.task.name) == (value, name)


def test_the_old_name_does_not_declare_the_schedules_again(place):
    from django_jobqueue.schedules.declaring import declared

    registry._handlers.pop("tests.taskapp.tasks.add", None)
    place.add.func.__jobqueue_schedules__ = (declared()["jobqueue.history.purge"],)
    try:
        place.old_name = place.add
        learning.learn("tests.taskapp.tasks.add")
        learning.learn(OLD_NAME)

        on = {key: hasattr(registry.get(key), "__jobqueue_schedules__") for key in registry.types()}
    finally:
        del place.add.func.__jobqueue_schedules__
    assert on["tests.taskapp.tasks.add"]
    assert not on[OLD_NAME]
