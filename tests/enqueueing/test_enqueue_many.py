import pytest
from django.db import DatabaseError, connection, transaction

from django_jobqueue import JobRequest
from django_jobqueue.exceptions import EnqueueConflict
from django_jobqueue.models import Job
from tests.claims import row
from tests.enqueueing.test_enqueue import Flicker
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db


def test_jobs_come_back_in_the_order_asked(jobs):
    numbers = [5, 3, 9, 1, 7]

    made = jobs.enqueue_many(
        JobRequest("test.echo", {"n": number}, dedup_key=f"key-{number}", priority=number)
        for number in numbers
    )

    assert [job.payload["n"] for job in made] == numbers
    assert [row(job)["priority"] for job in made] == numbers
    for job in made:
        assert {name: getattr(job, name) for name in row(job)} == row(job)


def test_no_request_is_no_query(jobs, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert jobs.enqueue_many([]) == []


def test_duplicates_share_one_job(jobs):
    first, other, again, free = jobs.enqueue_many(
        [
            JobRequest("test.echo", {"n": 1}, subject=("report", 7)),
            JobRequest("test.echo", {"n": 2}, subject=("report", 8)),
            JobRequest("test.echo", {"n": 3}, subject=("report", 7)),
            JobRequest("test.echo", {"n": 4}, subject=("report", 7), skip_dedup=True),
        ]
    )

    assert again is first
    assert first.payload == {"n": 1}
    assert len({first.pk, other.pk, free.pk}) == Job.objects.count() == 3


def test_duplicates_of_an_active_job_share_it(jobs):
    active = JobFactory(dedup_key="once", running=True)
    before = row(active)

    new, first, second = jobs.enqueue_many(
        [
            JobRequest("test.echo"),
            JobRequest("test.echo", dedup_key="once"),
            JobRequest("test.echo", dedup_key="once"),
        ]
    )

    assert first == second == active != new
    assert row(active) == before
    assert Job.objects.count() == 2


def test_each_request_has_its_own_delay(jobs):
    now, later, much_later = jobs.enqueue_many(
        [JobRequest("test.echo", delay=delay) for delay in (None, 60, 120)]
    )

    assert now.scheduled_for is None
    assert (much_later.scheduled_for - later.scheduled_for).total_seconds() == 60


def test_two_thousand_rows_are_enqueued_at_once(jobs):
    made = jobs.enqueue_many(
        JobRequest("test.echo", {"n": number}, subject=("row", number % 1_900))
        for number in range(2_000)
    )

    assert Job.objects.count() == len({job.pk for job in made}) == 1_900
    assert [job.payload["n"] for job in made] == [*range(1_900), *range(100)]


@committed
def test_a_conflict_of_one_leaves_no_row_of_the_others(jobs):
    JobFactory(dedup_key="once", cancelled=True)

    with connection.execute_wrapper(Flicker(times=9)), pytest.raises(EnqueueConflict):
        jobs.enqueue_many([JobRequest("test.echo"), JobRequest("test.echo", dedup_key="once")])

    assert Job.objects.count() == 1


@committed
def test_what_the_database_refuses_leaves_no_row_of_the_others(jobs):
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX one_job_a_reason ON django_jobqueue_job (reason)")
    try:
        with pytest.raises(DatabaseError):
            jobs.enqueue_many([JobRequest("test.echo", reason=reason) for reason in "abca"])
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX one_job_a_reason")

    assert not Job.objects.exists()


@committed
def test_a_rollback_of_the_caller_removes_all(jobs):
    with transaction.atomic():
        jobs.enqueue_many([JobRequest("test.echo")] * 3)
        transaction.set_rollback(True)

    assert not Job.objects.exists()


@on_postgresql
@committed
def test_many_jobs_are_one_insert(django_assert_num_queries):
    with transaction.atomic(), django_assert_num_queries(3):  # A savepoint around the insert.
        Job.objects.enqueue_many([JobRequest("test.echo")] * 50)
