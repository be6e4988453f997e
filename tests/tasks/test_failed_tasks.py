import logging
import sys

import pytest

from django_jobqueue.exceptions import TaskFailed
from django_jobqueue.models import Job
from django_jobqueue.testing import run_job
from tests.taskapp.framework import task_finished

pytestmark = pytest.mark.django_db

LOGGERS = ("django.tasks", "django_tasks")


@pytest.fixture
def handled():
    """What the receivers of `task_finished` find handled, one entry a signal."""
    seen = []

    def receive(**_):
        seen.append(sys.exc_info()[1])

    task_finished.connect(receive)
    yield seen
    task_finished.disconnect(receive)


def test_the_frameworks_log_of_a_failed_task_holds_its_traceback(jobqueue, handled, caplog):
    from tests.taskapp.tasks import fail

    jobqueue(MAX_ATTEMPTS=1)
    result = fail.enqueue("no such book")

    run_job(Job.objects.get(pk=result.id), raise_errors=False)

    (error,) = handled
    assert isinstance(error, TaskFailed)
    assert str(error).endswith("LookupError: no such book\n")
    (line,) = [
        record
        for record in caplog.records
        if record.name in LOGGERS and record.levelno == logging.ERROR
    ]
    assert "LookupError: no such book" in caplog.handler.format(line)


def test_no_exception_is_handled_while_a_success_is_told(handled):
    from tests.taskapp.tasks import add

    result = add.enqueue(1)

    run_job(Job.objects.get(pk=result.id))

    assert handled == [None]
