import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import Executor, JobStatus
from tests.claims import LEASE, LEASES, claimed, locked, row, tokens
from tests.factories import JobFactory, QueueControlFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db


def test_jobs_come_by_priority_then_by_age(jobs):
    names = [JobFactory(priority=priority).pk for priority in (0, 5, -5, 0)]
    old, later, urgent, young = names

    assert [job.pk for job in claimed(4, jobs=jobs)] == [urgent, old, young, later]


def test_a_claim_takes_the_most_urgent_of_many(jobs):
    JobFactory.create_batch(3)
    urgent = JobFactory(priority=-1)

    (job,) = claimed(jobs=jobs)

    assert job == urgent


def test_a_claim_writes_who_holds_the_job_how_long_and_charges_the_attempt(jobs):
    JobFactory(attempts=1)
    (token,) = tokens()

    (job,) = jobs.claim([token], LEASES, workers={token: "host:7:1"}, max_attempts={"test.echo": 5})

    stored = row(job)
    assert stored["status"] == JobStatus.RUNNING
    assert stored["attempts"] == 2
    assert stored["max_attempts"] == 5
    assert stored["claim_token"] == token
    assert stored["worker"] == "host:7:1"
    assert stored["executor"] == Executor.SERVER
    assert stored["node_id"] is None
    assert stored["lease_seconds"] == LEASE.total_seconds()
    assert stored["lease_expires_at"] - stored["started_at"] == LEASE
    assert stored["started_at"] >= stored["created_at"]
    assert stored["finished_at"] is None


def test_a_claimed_job_equals_its_row(jobs):
    JobFactory(payload={"n": [1, None]}, subject_type="report", subject_id="7")

    (job,) = claimed(jobs=jobs)

    assert {name: getattr(job, name) for name in row(job)} == row(job)
    assert job._state.db == "default"
    assert not job._state.adding


def test_a_node_claims_under_its_id(jobs):
    JobFactory()
    node = uuid.uuid4()

    (job,) = claimed(jobs=jobs, executor=Executor.NODE, node_id=node)

    assert (row(job)["executor"], row(job)["node_id"]) == ("node", node)


def test_a_row_keeps_its_attempt_budget_when_the_claimer_names_none(jobs):
    JobFactory(max_attempts=7)

    (job,) = claimed(jobs=jobs)

    assert job.max_attempts == row(job)["max_attempts"] == 7


def test_every_type_gets_its_own_lease_and_budget(jobs):
    JobFactory(type="test.echo")
    JobFactory(type="test.fail")
    leases = {"test.fail": timedelta(seconds=30), "test.echo": timedelta(seconds=60.5)}

    echo, fail = claimed(2, jobs=jobs, leases=leases, max_attempts={"test.fail": 2})

    assert (echo.lease_seconds, echo.max_attempts) == (60.5, None)
    assert (fail.lease_seconds, fail.max_attempts) == (30.0, 2)
    assert fail.lease_expires_at - fail.started_at == timedelta(seconds=30)


def test_every_row_gets_another_token(jobs):
    JobFactory.create_batch(3)
    asked = tokens(3)

    held = jobs.claim(asked, LEASES)

    assert {job.claim_token for job in held} == set(asked)


def test_at_most_a_row_a_token_is_claimed(jobs):
    JobFactory.create_batch(3)

    assert len(claimed(2, jobs=jobs)) == 2
    assert Job.objects.running().count() == 2


def test_fewer_rows_than_tokens_are_all_claimed(jobs):
    JobFactory.create_batch(2)

    assert len(claimed(5, jobs=jobs)) == 2


def test_more_types_than_rows_do_no_harm(jobs):
    JobFactory()
    leases = LEASES | {f"test.{number}": LEASE for number in range(200)}

    assert len(claimed(3, jobs=jobs, leases=leases)) == 1


def test_a_scheduled_job_is_claimed_only_once_promoted(jobs):
    job = JobFactory(due=True)

    assert claimed(jobs=jobs) == []
    assert jobs.promote() == 1
    assert claimed(jobs=jobs) == [job]


def test_only_the_types_asked_for_are_claimed(jobs):
    JobFactory(type="test.new")

    assert claimed(jobs=jobs) == []


def test_only_the_queues_asked_for_are_claimed(jobs):
    JobFactory(queue="mail")
    slow = JobFactory(queue="slow")

    assert claimed(jobs=jobs, queues=["other"]) == []
    assert claimed(5, jobs=jobs, queues=["slow", "other"]) == [slow]


@pytest.mark.parametrize(("kind", "name"), [("queue", "mail"), ("type", "test.echo")])
def test_what_is_paused_is_not_claimed(jobs, kind, name):
    JobFactory(queue="mail", type="test.echo")
    other = JobFactory(queue="other", type="test.fail")
    QueueControlFactory(kind=kind, name=name)

    assert claimed(5, jobs=jobs, leases={"test.echo": LEASE, "test.fail": LEASE}) == [other]


def test_a_pause_of_a_queue_does_not_pause_a_type_of_that_name(jobs):
    job = JobFactory(queue="default", type="test.echo")
    QueueControlFactory(kind="queue", name="test.echo")
    QueueControlFactory(kind="type", name="default")

    assert claimed(jobs=jobs) == [job]


def test_a_claimed_job_cannot_be_claimed_again(jobs):
    JobFactory()
    (first,) = claimed(jobs=jobs)
    before = row(first)

    assert claimed(jobs=jobs) == []
    assert row(first) == before


@pytest.mark.parametrize("state", ["running", "succeeded", "failed", "cancelled"])
def test_only_pending_jobs_are_claimed(jobs, state):
    JobFactory(**{state: True})

    assert claimed(jobs=jobs) == []


@pytest.mark.parametrize(
    ("count", "leases", "queues"),
    [(0, LEASES, None), (1, {}, None), (1, LEASES, [])],
    ids=["no tokens", "no types", "no queues"],
)
def test_who_asks_for_nothing_gets_nothing_without_a_query(
    jobs, count, leases, queues, django_assert_num_queries
):
    JobFactory()

    with django_assert_num_queries(0):
        assert jobs.claim(tokens(count), leases, queues=queues) == []


def test_hints_never_hide_a_job(jobs):
    job = JobFactory()

    assert claimed(jobs=jobs, hints={0: uuid.UUID(int=2**128 - 1)}) == [job]


def test_a_claim_writes_no_attempt_row(jobs):
    JobFactory()

    claimed(jobs=jobs)

    assert not JobAttempt.objects.exists()


@on_postgresql
@committed
def test_a_claim_is_one_statement_around_a_locking_pick():
    claimed(2)  # The first claim of a size compiles the pick.
    JobFactory.create_batch(2)

    with CaptureQueriesContext(connection) as queries:
        assert len(claimed(2)) == 2

    (query,) = queries
    assert "FOR NO KEY UPDATE SKIP LOCKED" in query["sql"]


@on_postgresql
@committed
def test_a_row_locked_by_somebody_is_skipped_not_waited_for(jobs):
    first, second = JobFactory.create_batch(2)

    with locked(first):
        assert claimed(2, jobs=jobs) == [second]

    assert claimed(jobs=jobs) == [first]


def test_only_the_chosen_jobs_are_claimed_wherever_they_lie(jobs):
    JobFactory.create_batch(100, priority=-1)
    low, high = JobFactory(priority=9), JobFactory(priority=5)
    JobFactory(priority=7)

    assert claimed(5, jobs=jobs, ids=[low.pk, high.pk]) == [high, low]
    assert claimed(5, jobs=jobs, ids=[low.pk]) == []
    assert claimed(5, jobs=jobs, ids=[]) == []


def test_a_chosen_job_that_may_not_run_is_not_claimed(jobs):
    scheduled, ended, other = JobFactory(scheduled=True), JobFactory(failed=True), JobFactory()
    foreign = JobFactory(type="test.foreign")
    paused = JobFactory(queue="paused")
    QueueControlFactory(name="paused")
    chosen = [job.pk for job in (scheduled, ended, foreign, paused)]

    assert claimed(5, jobs=jobs, ids=chosen) == []
    assert claimed(5, jobs=jobs, ids=[other.pk], queues=["mail"]) == []


@on_postgresql
@committed
def test_a_chosen_job_that_is_locked_is_not_waited_for(jobs):
    job = JobFactory()

    with locked(job):
        assert claimed(jobs=jobs, ids=[job.pk]) == []
