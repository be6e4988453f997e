"""Jobs that become ready behind the place where a worker searches start all the same."""

import threading
from contextlib import closing
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connections

from django_jobqueue import JobRequest, wakeups
from django_jobqueue.hints import LOOK_SECONDS, Hints, Position, Sight
from django_jobqueue.ids import uuid7
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from django_jobqueue.wakeups import WakeUp
from django_jobqueue.worker.eligibility import Eligibility
from django_jobqueue.worker.lookout import Lookout
from django_jobqueue.worker.pool import PoolEvent
from tests.factories import JobFactory
from tests.marks import on_postgresql
from tests.processes import eventually
from tests.worker.conftest import wait_for

pytestmark = [on_postgresql, pytest.mark.usefixtures("transactional_db")]

ENOUGH = timedelta(seconds=2)
SOON = 20
FAR = UUID(int=2**120)


def old_id(minutes, number):
    """An id as a producer made it that is behind by so much."""
    milliseconds = (uuid7().int >> 80) - minutes * 60_000
    return UUID(int=(milliseconds << 80) | 7 << 76 | 2 << 62 | number)


def late(count=1, minutes=10, **columns):
    """Insert ready jobs with old ids; nobody is told of them."""
    ids = [old_id(minutes, number) for number in range(count)]
    return Job.objects.bulk_create(JobFactory.build(pk=made, **columns) for made in ids)


def left_of(jobs):
    """How many of the jobs have not started yet."""
    return Job.objects.filter(pk__in=[job.pk for job in jobs], started_at=None).count()


@pytest.fixture
def rings():
    return []


@pytest.fixture
def lookout(rings):
    """A lookout over hints that begin far behind, and are in doubt."""
    hints = Hints()
    hints.advance(hints.ask_for(Eligibility().terms().leases, None), [Position(0, FAR)])
    return Lookout(Job.objects, Eligibility(), hints, lambda: rings.append("rung"))


# The chore


def test_it_rings_when_there_is_something(lookout, rings):
    late()

    assert lookout() == LOOK_SECONDS
    assert rings == ["rung"]


@pytest.mark.parametrize("columns", [{"type": "test.foreign"}, {"scheduled": True}])
def test_it_is_quiet_when_there_is_nothing_to_take(lookout, rings, columns):
    JobFactory(**columns)

    assert lookout() == LOOK_SECONDS
    assert rings == []


def test_it_looks_only_when_that_is_due(lookout, rings, django_assert_num_queries):
    late()

    with django_assert_num_queries(1):
        for _ in range(5):
            lookout()
    assert rings == ["rung"]


def test_without_a_mark_it_never_looks(rings, django_assert_num_queries):
    late()
    hints = Hints()
    lookout = Lookout(Job.objects, Eligibility(), hints, lambda: rings.append("rung"))

    with django_assert_num_queries(0):
        lookout()
    assert rings == []


def test_it_looks_for_what_this_worker_may_run(rings):
    hints = Hints({0: FAR})
    eligibility = Eligibility(types=["test.echo"], queues=("mail",))
    late(queue="other")
    late(type="test.note", queue="mail", minutes=11)
    Lookout(Job.objects, eligibility, hints, lambda: rings.append("rung"))()

    assert rings == []


def test_a_worker_that_may_run_nothing_asks_nothing(rings, django_assert_num_queries):
    eligibility = Eligibility(types=["test.unknown"])
    late()

    with django_assert_num_queries(0):
        Lookout(Job.objects, eligibility, Hints({0: FAR}), lambda: rings.append("rung"))()


# A worker


@pytest.fixture
def steady(handler):
    """A handler slow enough to keep four slots busy with a backlog for some seconds."""
    pause = threading.Event()

    @handler(name="test.steady")
    def steady(job):
        pause.wait(0.004)

    return "test.steady"


def test_late_jobs_start_soon_under_a_steady_stream(pools, steady):
    """They commit while every claim is full: none comes short, and so none looks by itself."""
    Job.objects.enqueue_many(JobRequest(steady) for _ in range(4_000))
    pools(4).start()
    eventually(lambda: Job.objects.terminal().count() > 200, "the stream does not run")

    jobs = late(100, type=steady)
    committed_at = Job.objects.now()
    eventually(lambda: left_of(jobs) == 0, "late jobs were not found")

    assert Job.objects.ready().exists(), "the stream ended too soon to say anything"
    last = Job.objects.filter(pk__in=[job.pk for job in jobs]).latest("started_at")
    assert last.started_at - committed_at < ENOUGH


def test_jobs_that_committed_long_after_their_ids_start_soon(pools, steady):
    with closing(connections.create_connection("default")) as wrapper:
        wrapper.set_autocommit(False)
        jobs = [JobFactory.build(type=steady, pk=uuid7()) for _ in range(50)]
        connections["default"], own = wrapper, connections["default"]
        try:
            Job.objects.bulk_create(jobs)
        finally:
            connections["default"] = own
        Job.objects.enqueue_many(JobRequest(steady) for _ in range(4_000))
        pools(4).start()
        eventually(lambda: Job.objects.terminal().count() > 200, "the stream does not run")
        wrapper.commit()
    committed_at = Job.objects.now()
    eventually(lambda: left_of(jobs) == 0, "late jobs were not found")

    assert Job.objects.ready().exists(), "the stream ended too soon to say anything"
    last = Job.objects.filter(pk__in=[job.pk for job in jobs]).latest("started_at")
    assert last.started_at - committed_at < ENOUGH


@pytest.fixture
def idle(pools, jobqueue):
    """Start a pool that has run jobs, and so has marks, and now waits."""

    def start(**values):
        jobqueue(**values)
        pool = pools(2)
        Job.objects.enqueue_many(JobRequest("test.echo") for _ in range(40))
        pool.start()
        eventually(lambda: Job.objects.terminal().count() == 40, "the jobs did not run")
        eventually(lambda: all(slot.idle for slot in pool._slots), "the slots are not idle")
        assert pool._exchange.hints.any
        return pool

    return start


def test_an_idle_worker_finds_an_old_job_when_it_is_woken(idle):
    idle(POLL_INTERVAL=60)
    for minutes in range(1, 6):
        (job,) = late(minutes=minutes)
        made_at = Job.objects.now()
        wakeups.announce("default", [WakeUp()])
        eventually(lambda job=job: left_of([job]) == 0, "it was not found", SOON)
        job.refresh_from_db()

        assert job.started_at - made_at < ENOUGH


def test_an_idle_worker_finds_an_old_job_by_its_poll(idle):
    idle(POLL_INTERVAL=0.2, NOTIFY=False)
    for minutes in range(1, 6):
        (job,) = late(minutes=minutes)
        made_at = Job.objects.now()
        eventually(lambda job=job: left_of([job]) == 0, "it was not found", SOON)
        job.refresh_from_db()

        assert job.started_at - made_at < ENOUGH


def test_a_poll_finds_an_old_job_though_looks_cost_too_much(idle):
    hints = idle(POLL_INTERVAL=0.2, NOTIFY=False)._exchange.hints
    hints.saw(hints.ask_for(Eligibility().terms().leases, None), Sight(), seconds=60)
    (job,) = late()
    eventually(lambda: left_of([job]) == 0, "it was not found", SOON)

    assert not hints.may_look


@pytest.mark.parametrize(
    ("kind", "name", "columns"),
    [("queue", "slow", {"queue": "slow"}), ("type", "test.async", {"type": "test.async"})],
)
def test_an_idle_worker_finds_what_waits_before_its_marks_after_a_pause(idle, kind, name, columns):
    Job.objects.pause(kind, name)
    jobs = late(3, **columns)
    idle(POLL_INTERVAL=60)
    assert left_of(jobs) == 3

    Job.objects.resume(kind, name)
    eventually(lambda: left_of(jobs) == 0, "they were not found", SOON)


def test_a_drain_leaves_no_job_before_the_marks(pools):
    pool = pools(2, drain=True)
    hints, leases = pool._exchange.hints, pool.eligibility.terms().leases
    hints.advance(hints.ask_for(leases, None), [Position(0, FAR)])
    late(30)
    Job.objects.enqueue_many(JobRequest("test.echo") for _ in range(30))
    pool.start()
    wait_for(pool, PoolEvent.DRAINED)

    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 60
