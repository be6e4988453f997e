"""`jobqueue status`."""

from datetime import timedelta

import pytest

from django_jobqueue.models import Job
from tests.factories import JobFactory, WorkerProcessFactory
from tests.managers.rows import claimed, expired, now, saved, unsaved

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def busy():
    expired("test.a")
    claimed("test.a")
    moment = now() - timedelta(minutes=10)
    JobFactory(type="test.a", created_at=moment, ready_at=moment)
    JobFactory(type="test.a", scheduled=True)
    JobFactory(type="test.lost", queue="far")
    saved(
        unsaved("succeeded", age=timedelta(minutes=5)), unsaved("failed", age=timedelta(minutes=5))
    )
    Job.objects.pause("queue", "imports", reason="they are down")
    WorkerProcessFactory(busy=1, types=["test.a"])


def test_an_empty_queue_is_told(jobqueue_command):
    text = jobqueue_command("status").text

    assert "oldest due: none" in " ".join(text.split())
    assert "workers: 0 with 0 slots" in " ".join(text.split())


def test_it_tells_what_waits_runs_and_is_wrong(jobqueue_command, busy):
    answer = jobqueue_command("status")

    words = " ".join(answer.text.split())
    assert "ready: 2 scheduled: 1 running: 2 stuck: 1 oldest due: waits 10 min, test.a of" in words
    assert "last hour: 1 succeeded, 1 failed workers: 1 with 4 slots" in words
    assert "PAUSED queue imports: they are down" in answer.lines
    (problem,) = [line for line in answer.lines if line.startswith("PROBLEM")]
    assert problem == (
        "PROBLEM: no worker runs test.lost: register its handler, or cancel them: "
        "python manage.py jobqueue cancel --all-matching --type test.lost"
    )
    assert any(line.split() == ["test.a", "1", "1", "2", "0", "1"] for line in answer.lines)
    assert any(line.split()[:5] == ["box:7", "1", "all", "1/4", "all"] for line in answer.lines)


def test_json_tells_the_same(jobqueue_command, busy):
    said = jobqueue_command("status", "--format", "json").said

    assert set(said) == {
        "at",
        "jobs",
        "types",
        "oldest_due_seconds",
        "oldest_due",
        "unserved",
        "last_hour",
        "paused",
        "workers",
    }
    assert (said["jobs"]["ready"], said["jobs"]["stuck"]) == (2, 1)
    assert said["types"]["test.lost"]["ready"] == 1
    assert 600 <= said["oldest_due_seconds"] < 660
    assert said["oldest_due"] == {"type": "test.a", "queue": "default"}
    assert said["unserved"] == [{"type": "test.lost", "queue": "far"}]
    assert said["last_hour"] == {"succeeded": 1, "failed": 1}
    assert said["paused"][0]["reason"] == "they are down"
    assert said["workers"][0]["worker"] == "box:7"


def test_without_a_worker_that_is_said_once_however_many_types_wait(jobqueue_command):
    JobFactory(type="test.a")
    JobFactory(type="test.b")

    answer = jobqueue_command("status")

    assert [line for line in answer.lines if line.startswith("PROBLEM")] == [
        "PROBLEM: no worker is alive. Run: python manage.py run_jobworker"
    ]
    assert len(jobqueue_command("status", "--format", "json").said["unserved"]) == 2
