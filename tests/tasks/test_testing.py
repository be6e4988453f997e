import pytest

from django_jobqueue.testing import assert_enqueued, assert_not_enqueued, drain, run_job
from tests.taskapp import tasks

pytestmark = pytest.mark.django_db


def test_a_test_names_a_type_by_its_task():
    tasks.add.enqueue(1, other=2)

    assert_enqueued(tasks.add, payload={"args": [1], "kwargs": {"other": 2}})
    assert_not_enqueued(tasks.greet)
    assert len(drain(types=[tasks.greet])) == 0
    assert len(drain(types=[tasks.add])) == 1


def test_a_test_runs_a_task_or_the_job_behind_its_result():
    assert run_job(tasks.add, {"args": [3]}).job.result == 3
    result = tasks.add.enqueue(4)

    assert str(run_job(result).job.pk) == result.id
    result.refresh()
    assert result.return_value == 4
