import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.utils import timezone
from opentelemetry import trace

from django_jobqueue.exceptions import InvalidPayload, JobCancelled
from django_jobqueue.models import Job
from django_jobqueue.task_backend.backend import JobTask
from django_jobqueue.task_backend.call import Call
from django_jobqueue.task_backend.results import result_of
from django_jobqueue.testing import adrain, drain, run_job
from tests.taskapp import tasks
from tests.taskapp.framework import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    default_task_backend,
    task,
)
from tests.worker.test_spans import provide

pytestmark = pytest.mark.django_db


def stored(result):
    return Job.objects.get(pk=result.id)


def ran(result):
    """Run what waits, and return the result as it is stored then."""
    drain(raise_errors=False, with_retries=True)
    return default_task_backend.get_result(result.id)


def test_a_call_becomes_a_job_and_its_result():
    result = tasks.add.enqueue(1, other=2)

    job = stored(result)
    assert job.type == "tests.taskapp.tasks.add"
    assert job.payload == {"args": [1], "kwargs": {"other": 2}, "backend": "default"}
    assert (job.queue, job.priority, job.dedup_key) == ("default", 0, None)
    assert result.status == TaskResultStatus.READY
    assert (result.args, result.kwargs, result.backend) == ([1], {"other": 2}, "default")
    assert result.enqueued_at == job.created_at
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.attempts, result.errors, result.is_finished) == (0, [], False)
    assert result.task == tasks.add
    assert default_task_backend.get_result(result.id) == result


def test_a_result_follows_its_job():
    result = tasks.add.enqueue(1, other=2)
    drain()

    result.refresh()

    job = stored(result)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == 3
    assert (result.attempts, result.worker_ids) == (1, [job.worker])
    assert result.started_at == result.last_attempted_at == job.started_at
    assert result.finished_at == job.finished_at
    assert result.errors == []
    assert tasks.add.get_result(result.id) == result


def test_an_async_task_is_awaited():
    result = tasks.add_later.enqueue(1, other=2)

    assert ran(result).return_value == 3


@pytest.mark.django_db(transaction=True)
def test_all_of_it_from_async_code():
    async def use():
        result = await tasks.add.aenqueue(4, 5)
        found = await tasks.add.aget_result(result.id)
        assert found == result
        await adrain()
        await result.arefresh()
        # The thread that asgiref keeps for all of this.
        await sync_to_async(connections.close_all)()
        return result

    assert asyncio.run(use()).return_value == 9


def test_the_larger_priority_runs_sooner():
    for priority in (0, 100, -100, 7):
        tasks.greet.using(priority=priority).enqueue(str(priority))

    assert [run.job.result for run in drain()] == [
        f"Hello, {priority}." for priority in (100, 7, 0, -100)
    ]
    assert set(Job.objects.values_list("priority", flat=True)) == {-100, -7, 0, 100}


def test_queue_and_priority_of_the_decorator_and_of_using_reach_the_job():
    usual, special = tasks.greet, tasks.greet.using(queue_name="special", priority=-3)

    first, second = usual.enqueue("A"), special.enqueue("B")

    assert (stored(first).queue, stored(first).priority) == ("mail", -10)
    assert (stored(second).queue, stored(second).priority) == ("special", 3)
    assert default_task_backend.get_result(second.id).task == special


def test_a_task_runs_after_its_time_and_remembers_it():
    later = timezone.now().astimezone(UTC) + timedelta(hours=1)
    result = tasks.add.using(run_after=later).enqueue(1)

    assert stored(result).scheduled_for == later
    assert len(drain()) == 0
    assert len(drain(with_scheduled=True)) == 1
    result.refresh()
    assert result.return_value == 1
    assert result.task.run_after == later
    assert default_task_backend.get_result(result.id).task.run_after == later


def test_a_time_that_is_past_means_now():
    result = tasks.add.using(run_after=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(1)

    assert ran(result).return_value == 1


def test_a_context_tells_the_task_of_its_attempt():
    result = tasks.about.enqueue("more", "and more")

    said = ran(result).return_value
    worker = stored(result).worker
    assert said == {
        "id": result.id,
        "attempt": 1,
        "status": "RUNNING",
        "args": ["more", "and more"],
        "workers": [worker],
        "more": ["more", "and more"],
    }
    assert ran(tasks.about_later.enqueue()).return_value == 1


def test_a_task_that_waits_for_its_next_attempt_is_ready():
    result = tasks.stumble.enqueue(2)
    drain(raise_errors=False)

    waiting = default_task_backend.get_result(result.id)
    assert waiting.status == TaskResultStatus.READY
    assert (waiting.attempts, len(waiting.errors)) == (1, 1)
    assert waiting.errors[0].exception_class is ValueError
    assert waiting.errors[0].exception_class_path == "builtins.ValueError"
    assert waiting.errors[0].traceback.endswith("ValueError: attempt 1\n")
    with pytest.raises(ValueError, match="not finished"):
        waiting.return_value  # noqa: B018

    over = ran(result)
    assert over.return_value == 3
    assert (over.attempts, len(over.errors)) == (3, 2)
    assert over.started_at < over.last_attempted_at


def test_a_task_fails_when_its_attempts_are_spent():
    result = ran(tasks.fail.enqueue("no such thing"))

    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [LookupError] * 3
    assert result.attempts == 3
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value  # noqa: B018


def test_a_retry_by_hand_begins_anew():
    result = ran(tasks.fail.enqueue("no such thing"))
    Job.objects.retry(stored(result))

    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert (result.attempts, result.errors, result.started_at) == (0, [], None)
    drain(raise_errors=False)
    result.refresh()
    assert (result.attempts, len(result.errors)) == (1, 1)


def test_a_cancelled_task_failed_and_says_why():
    result = tasks.add.enqueue(1)
    Job.objects.cancel(stored(result))

    result.refresh()

    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [JobCancelled]
    assert result.finished_at is not None


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("set", TypeError, "What the task returned cannot be stored: Unsupported type"),
        ("nan", None, "InvalidResult"),
    ],
)
def test_a_result_that_cannot_be_stored_fails_the_attempt(kind, error, said):
    result = tasks.give_back.enqueue(kind)
    drain(raise_errors=False)
    result.refresh()

    assert result.status == TaskResultStatus.READY
    assert said in result.errors[0].traceback
    assert error is None or result.errors[0].exception_class is error


@pytest.mark.parametrize(("kind", "value"), [("bytes", "text"), ("tuple", [1, 2])])
def test_a_result_is_what_json_makes_of_it(kind, value):
    assert ran(tasks.give_back.enqueue(kind)).return_value == value


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), TypeError),
        (float("nan"), InvalidPayload),
        ("a\0b", InvalidPayload),
        ({1: "one"}, InvalidPayload),
        (b"\xff", ValueError),
        ("x" * 2**20, InvalidPayload),
    ],
)
def test_arguments_that_cannot_be_stored_are_refused_at_once(argument, error):
    with pytest.raises(error):
        tasks.add.enqueue(argument)
    with pytest.raises(error):
        tasks.add.enqueue(1, other=argument)

    assert not Job.objects.exists()


UNKNOWN = "01a22ea1-fe22-7192-82b8-21272ef74c16"


@pytest.mark.parametrize("result_id", ["123", "", UNKNOWN, None, 7, "x" * 5000])
def test_a_result_that_is_not_there(result_id):
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(result_id)


def test_a_job_of_another_kind_is_no_result():
    for job_type, payload in [("test.echo", {"x": 1}), ("tests.taskapp.tasks.add", {"x": 1})]:
        job = Job.objects.enqueue(job_type, payload)
        with pytest.raises(TaskResultDoesNotExist):
            default_task_backend.get_result(str(job.pk))


def test_the_result_of_another_task_is_a_mismatch():
    with pytest.raises(TaskResultMismatch):
        tasks.greet.get_result(tasks.add.enqueue(1).id)


def test_a_job_without_the_backend_in_its_payload_runs_too():
    """As a schedule makes it, or a person."""
    job = Job.objects.enqueue("tests.taskapp.tasks.add", {"args": [20, 3]})

    assert run_job(job).job.result == 23
    assert default_task_backend.get_result(str(job.pk)).backend == "default"


@pytest.mark.parametrize(
    "payload",
    [{"args": {}}, {"kwargs": []}, {"backend": 3}, {"arguments": []}, {"run_after": "soon"}],
)
def test_a_payload_that_is_no_call_fails_the_job_at_once(payload):
    job = Job.objects.enqueue("tests.taskapp.tasks.add", payload)
    tasks.add.enqueue(1)

    drain(raise_errors=False)

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.last_error.startswith("InvalidCall: The payload")


def test_an_enqueue_is_part_of_the_transaction():
    with transaction.atomic():
        lost = tasks.add.enqueue(1)
        transaction.set_rollback(True)
    kept = tasks.add.enqueue(2)

    assert list(Job.objects.values_list("pk", flat=True)) == [stored(kept).pk]
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(lost.id)


def test_a_task_is_checked_again_when_it_is_enqueued(task_site):
    task_site(default={"QUEUES": ["default"]})

    with pytest.raises(InvalidTask, match="Queue 'mail' is not valid"):
        tasks.greet.enqueue("A")


def test_a_queue_longer_than_its_column_is_refused():
    with pytest.raises(InvalidTask, match="queue has 101 characters"):
        tasks.add.using(queue_name="q" * 101)


def test_a_task_that_no_worker_could_find_again_is_not_enqueued():
    def function():
        """Look like one of the module's own."""

    function.__module__, function.__qualname__ = __name__, "stranger"

    with pytest.raises(InvalidTask, match=r"test_backend.stranger is no task: a worker looks"):
        task(function).enqueue()

    assert not Job.objects.exists()


def test_tasks_are_of_a_class_that_knows_limits():
    made = task(tasks.add.func)

    assert isinstance(made, JobTask)
    assert (made.max_attempts, made.max_runtime, made.provider) == (None, None, None)


def test_a_job_that_went_on_while_it_was_read_is_told_as_it_was():
    result = tasks.stumble.enqueue(3)
    drain(raise_errors=False)
    job = Job.objects.get(pk=result.id)
    drain(raise_errors=False, with_retries=True)
    # It was read during its second attempt, and its history after the third.
    job.status, job.attempts, job.worker = "running", 2, "here"

    found = result_of(job, tasks.stumble, Call.of(job.payload))

    assert [error.traceback.splitlines()[-1] for error in found.errors] == ["ValueError: attempt 1"]
    assert found.attempts == 2


def test_a_module_is_not_asked_to_make_a_name_up(monkeypatch):
    asked = []
    monkeypatch.setattr(tasks, "__getattr__", asked.append, raising=False)
    job = Job.objects.enqueue("tests.taskapp.tasks.made_up", {"args": [], "backend": "default"})

    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(str(job.pk))

    assert asked == []


def test_what_a_rate_limit_puts_off_is_no_attempt():
    result = tasks.throttled.enqueue()
    drain(raise_errors=False)

    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert (result.attempts, result.worker_ids, result.errors) == (0, [], [])
    assert (result.started_at, result.last_attempted_at) == (None, None)
    assert stored(result).rate_limit_hits == 1


def test_an_attempt_joins_the_trace_of_its_enqueue(monkeypatch):
    spans = provide(monkeypatch)
    with trace.get_tracer("site").start_as_current_span("request") as request:
        result = tasks.add.enqueue(1)
    drain()

    span = spans.named("job.process tests.taskapp.tasks.add")
    assert span.context.trace_id == request.get_span_context().trace_id
    assert span.attributes["job.id"] == result.id
