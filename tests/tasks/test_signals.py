import logging
from datetime import timedelta
from uuid import uuid4

import pytest

from django_jobqueue.backends import JobQueueBackend
from django_jobqueue.models import Job
from django_jobqueue.signals import job_settled
from django_jobqueue.task_backend import finished, site
from django_jobqueue.testing import drain, fake_clock, reap
from django_jobqueue.worker import Pool
from tests import taskapp
from tests.processes import eventually
from tests.taskapp import tasks
from tests.taskapp.framework import (
    TaskResultDoesNotExist,
    default_task_backend,
    task_enqueued,
    task_finished,
    task_started,
)


@pytest.fixture
def heard():
    """Listen to the three signals, in order."""
    calls = []

    def listen(signal, name):
        def receive(sender, task_result, **_):
            said = (task_result.status.value, task_result.attempts, len(task_result.errors))
            calls.append((name, *said))
            assert sender is JobQueueBackend
            receive.results.append(task_result)

        receive.results = results
        signal.connect(receive)
        return signal, receive

    results = []
    signals = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    connected = [listen(signal, name) for name, signal in signals.items()]
    yield calls, results
    for signal, receive in connected:
        signal.disconnect(receive)


@pytest.mark.django_db
def test_a_success_is_told_step_by_step(heard):
    calls, results = heard
    tasks.add.enqueue(1, 2)
    drain()

    assert calls == [
        ("enqueued", "READY", 0, 0),
        ("started", "RUNNING", 1, 0),
        ("finished", "SUCCESSFUL", 1, 0),
    ]
    assert results[-1].return_value == 3
    assert results[-1].finished_at >= results[-1].started_at


@pytest.mark.django_db
def test_each_attempt_starts_and_the_task_finishes_once(heard):
    calls, _ = heard
    tasks.stumble.enqueue(1)
    drain(raise_errors=False, with_retries=True)

    assert calls == [
        ("enqueued", "READY", 0, 0),
        ("started", "RUNNING", 1, 0),
        ("started", "RUNNING", 2, 1),
        ("finished", "SUCCESSFUL", 2, 1),
    ]
    calls.clear()
    tasks.fail.enqueue("so")
    drain(raise_errors=False, with_retries=True)
    assert calls[-1] == ("finished", "FAILED", 3, 3)
    assert [name for name, *_ in calls] == ["enqueued", "started", "started", "started", "finished"]


@pytest.mark.django_db(transaction=True)
def test_cancelled_and_reaped_tasks_finish_too(heard):
    calls, _ = heard
    Job.objects.cancel(Job.objects.get(pk=tasks.add.enqueue(1).id))
    assert calls[-1] == ("finished", "FAILED", 0, 1)

    result = tasks.add.enqueue(1)
    lease = {"tests.taskapp.tasks.add": timedelta(seconds=10)}
    token = uuid4()
    Job.objects.claim([token], lease, workers={token: "w"}, max_attempts={next(iter(lease)): 1})
    with fake_clock() as clock:
        clock.advance(timedelta(hours=1))
        reap()
    assert calls[-1] == ("finished", "FAILED", 1, 1)
    result.refresh()
    assert "WorkerDied" in result.errors[0].traceback


@pytest.mark.django_db
def test_a_receiver_that_fails_harms_nobody(caplog):
    def fail(**_):
        raise ZeroDivisionError

    signals = (task_enqueued, task_started, task_finished)
    for signal in signals:
        signal.connect(fail)
    try:
        result = tasks.add.enqueue(1)
        drain()
    finally:
        for signal in signals:
            signal.disconnect(fail)

    result.refresh()
    assert result.return_value == 1
    assert caplog.text.count("ZeroDivisionError") >= 3


@pytest.mark.django_db
def test_a_call_that_is_there_already_is_not_enqueued_again(heard, task_site):
    calls, _ = heard
    task_site(default={"OPTIONS": {"dedup": lambda task, args, kwargs: "one"}})
    tasks.add.enqueue(1)
    tasks.add.enqueue(1)

    assert [name for name, *_ in calls] == ["enqueued"]


@pytest.mark.django_db
def test_jobs_that_are_no_tasks_send_none(heard):
    calls, _ = heard
    Job.objects.enqueue("test.echo")
    Job.objects.enqueue("test.unknown")
    drain()
    Job.objects.cancel(Job.objects.get(type="test.unknown"))

    assert calls == []


@pytest.mark.django_db
def test_the_frameworks_own_log_tells_of_tasks(caplog):
    with caplog.at_level(logging.INFO):
        tasks.add.enqueue(1)
        drain()

    assert "path=tests.taskapp.tasks.add state=SUCCESSFUL" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_real_pool_sends_them_from_the_slot(heard):
    calls, results = heard
    tasks.add.enqueue(1)
    tasks.add_later.enqueue(1, 2)
    pool = Pool(2)
    pool.start()
    try:
        eventually(lambda: [c for c in calls if c[0] == "finished"][1:], "not both finished")
    finally:
        pool.stop(5)

    returned = {r.task.name: r.return_value for r in results if r.is_finished}
    assert returned == {"add": 1, "add_later": 3}


def test_a_site_without_tasks_pays_nothing(settings):
    finished.disconnect()
    settings.TASKS = {}
    site.prepare()
    assert not job_settled.has_listeners(Job)


@pytest.mark.django_db
def test_a_task_that_is_retried_at_once_still_finishes_as_it_ended(heard):
    calls, results = heard

    def retry(sender, event, **_):
        if event.job_id not in retried:
            retried.append(event.job_id)
            Job.objects.retry([event.job_id])

    retried = []
    finished.disconnect()
    job_settled.connect(retry)
    finished.connect()
    try:
        tasks.fail.enqueue("text")
        drain(raise_errors=False, with_retries=True)
    finally:
        job_settled.disconnect(retry)

    ends = [said for said in calls if said[0] == "finished"]
    assert ends == [("finished", "FAILED", 3, 3)] * 2
    assert all(result.finished_at for result in results if result.is_finished)


@pytest.mark.django_db
def test_a_module_that_exits_when_imported_ends_nobody_who_cancels(monkeypatch, tmp_path):
    (tmp_path / "leaving.py").write_text("raise SystemExit\n")
    monkeypatch.setattr("tests.taskapp.__path__", [*taskapp.__path__, str(tmp_path)])
    call = {"args": [], "kwargs": {}, "backend": "default"}
    job = Job.objects.enqueue("tests.taskapp.leaving.work", call)

    assert Job.objects.cancel([job.pk])

    with pytest.raises(TaskResultDoesNotExist, match="cannot be imported: SystemExit"):
        default_task_backend.get_result(str(job.pk))
