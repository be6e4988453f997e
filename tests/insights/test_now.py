"""What waits, runs and works at the moment."""

import uuid
from datetime import timedelta

import pytest

from django_jobqueue import insights
from django_jobqueue.models import Job
from tests.factories import JobFactory, QueueControlFactory
from tests.insights.rows import now, worker

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def test_jobs_are_counted_by_what_they_wait_for():
    JobFactory(type="a")
    JobFactory(type="a", attempts=1, scheduled=True)
    JobFactory(type="a", due=True, rate_limit_hits=2)
    JobFactory(type="b", running=True)
    JobFactory(type="b", succeeded=True)
    lost = JobFactory(type="b", running=True)
    Job.objects.filter(pk=lost.pk).update(lease_expires_at=now() - MINUTE)

    found = insights.now()

    a, b = found.by_type["a"], found.by_type["b"]
    assert (a.ready, a.scheduled, a.due, a.pending) == (1, 2, 1, 3)
    assert (a.retried, a.rate_limited, a.running) == (1, 1, 0)
    assert (b.running, b.stuck, b.pending, b.active) == (2, 1, 0, 2)
    assert found.total.active == 5


def test_the_oldest_due_job_is_ready_or_due_and_not_paused():
    at = now()
    JobFactory(ready_at=at - 2 * MINUTE)
    JobFactory(scheduled_for=at - 5 * MINUTE, ready_at=at - 5 * MINUTE)
    JobFactory(scheduled_for=at + MINUTE, created_at=at - 50 * MINUTE)
    JobFactory(queue="held", ready_at=at - 90 * MINUTE)
    QueueControlFactory(kind="queue", name="held")

    age = insights.now().oldest_due_age

    assert 5 * MINUTE <= age < 6 * MINUTE


def test_a_worker_lives_for_45_seconds_after_it_was_seen():
    worker("a", host="alive", seen_ago=timedelta(seconds=30))
    worker("a", host="gone", seen_ago=timedelta(seconds=60))

    (alive,) = insights.workers()

    assert (alive.host, alive.name, alive.slots) == ("alive", "alive:1", 2)
    assert alive.types == {"a"}
    assert alive.queues is None


def test_waiting_jobs_that_no_live_worker_takes_are_told_by_type_and_queue():
    worker("a", queues=["default"])
    worker("b", seen_ago=timedelta(hours=1))
    for job_type, queue in (("a", "default"), ("a", "mail"), ("b", "default"), ("c", "held")):
        JobFactory(type=job_type, queue=queue)
    JobFactory(type="d", running=True)
    QueueControlFactory(kind="type", name="c")

    found = insights.now()

    assert [(lane.type, lane.queue) for lane in found.unserved] == [("a", "mail"), ("b", "default")]
    assert [(pause.kind, pause.name) for pause in found.pauses] == [("type", "c")]


def test_a_worker_without_a_slot_takes_nothing():
    worker("a", slots=0)
    JobFactory(type="a")

    assert [lane.type for lane in insights.now().unserved] == ["a"]


def test_a_job_that_nobody_started_is_stuck_after_the_threshold(jobqueue):
    jobqueue(STUCK_THRESHOLD=60)
    JobFactory(
        status="running",
        claim_token=uuid.uuid4(),
        lease_expires_at=None,
        created_at=now() - MINUTE * 2,
    )

    assert insights.now().total.stuck == 1
