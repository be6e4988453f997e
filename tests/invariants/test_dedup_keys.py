"""What holds however enqueues race: one active job a dedup key, and a usable transaction."""

import pytest
from django.db import OperationalError, connection, connections, transaction

from django_jobqueue import JobRequest
from django_jobqueue.database.errors import is_conflict
from django_jobqueue.exceptions import EnqueueConflict
from django_jobqueue.models import Job, QueueControl
from tests.aliases import alias
from tests.claims import claimed, settled, success
from tests.factories import JobFactory, QueueControlFactory
from tests.marks import committed, on_postgresql
from tests.threads import Meeting, together

pytestmark = committed
THREADS = 10
LEVELS = {"repeatable read": 3, "serializable": 4}  # As psycopg counts them.


def test_one_key_from_ten_threads_is_one_row(jobs):
    def enqueue():
        return [jobs.enqueue("test.echo", subject=("report", number)).pk for number in range(10)]

    answers = together(*[enqueue] * THREADS)

    assert all(answer == answers[0] for answer in answers)
    assert Job.objects.count() == 10


def test_one_key_from_ten_open_transactions_is_one_row_and_all_stay_usable(jobs):
    def enqueue():
        with transaction.atomic():
            QueueControlFactory()
            job = jobs.enqueue("test.echo", subject=("report", 7))
            QueueControlFactory()
        return job.pk

    answers = together(*[enqueue] * THREADS)

    assert len(set(answers)) == Job.objects.count() == 1
    assert QueueControl.objects.count() == 2 * THREADS


@on_postgresql
def test_a_key_whose_first_holder_rolls_back_is_inserted_by_another(jobs):
    meeting = Meeting(2)

    def roll_back():
        with transaction.atomic():
            job = jobs.enqueue("test.echo", dedup_key="once")
            meeting.wait()
            transaction.set_rollback(True)
        return job.pk

    def wait_and_insert():
        meeting.wait()
        return jobs.enqueue("test.echo", dedup_key="once").pk

    gone, kept = together(roll_back, wait_and_insert)

    assert gone != kept
    assert Job.objects.get().pk == kept


def test_many_with_the_same_keys_in_any_order_end_without_deadlock(jobs):
    numbers = list(range(40))

    def enqueue(order):
        requests = [JobRequest("test.echo", subject=("report", number)) for number in order]
        return lambda: {job.subject_id: job.pk for job in jobs.enqueue_many(requests)}

    orders = [numbers, numbers[::-1], numbers[20:] + numbers[:20], numbers[::2] + numbers[1::2]]
    answers = together(*[enqueue(order) for order in orders])

    assert all(answer == answers[0] for answer in answers)
    assert Job.objects.count() == 40


def test_a_key_is_never_held_twice_while_jobs_come_and_go(jobs):
    def enqueue():
        answers = []
        for _ in range(30):
            try:
                answers.append(jobs.enqueue("test.echo", dedup_key="once").pk)
            except EnqueueConflict:
                continue
        return answers

    def work():
        for _ in range(60):
            settled([success(job) for job in claimed(2, jobs=jobs)], jobs=jobs)

    first, second, _ = together(enqueue, enqueue, work)

    assert Job.objects.active().count() <= 1
    assert set(first) | set(second) == set(Job.objects.values_list("pk", flat=True))


# Callers whose transaction keeps a snapshot


def begin_repeatable_read():
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    return Job.objects.count()  # The first query takes the snapshot.


@on_postgresql
def test_a_snapshot_that_shows_the_owner_gives_the_owner():
    owner = JobFactory(dedup_key="once")

    with transaction.atomic():
        begin_repeatable_read()
        assert Job.objects.enqueue("test.echo", dedup_key="once") == owner
        QueueControlFactory()

    assert QueueControl.objects.count() == 1


@on_postgresql
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("how", ["OPTIONS", "server", "statement"])
def test_a_snapshot_that_hides_the_owner_leaves_the_transaction_usable(level, how):
    escaped = level.replace(" ", "\\ ")
    options = {
        "OPTIONS": {"isolation_level": LEVELS[level]},
        "server": {"options": f"-c default_transaction_isolation={escaped}"},
        "statement": {},
    }[how]
    with alias("snapshot", OPTIONS=options):
        connections["snapshot"].connect()
        jobs = Job.objects.db_manager("snapshot")
        with transaction.atomic(using="snapshot"):
            if how == "statement":
                with connections["snapshot"].cursor() as cursor:
                    cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            assert Job.objects.using("snapshot").count() == 0
            JobFactory(dedup_key="once")  # Committed by another connection.

            with pytest.raises(EnqueueConflict, match="Enqueue again in a new transaction"):
                jobs.enqueue("test.echo", dedup_key="once")
            jobs.enqueue("test.echo", dedup_key="other")

    assert set(Job.objects.values_list("dedup_key", flat=True)) == {"once", "other"}


@on_postgresql
@pytest.mark.parametrize("keyed", [1, 2])
def test_jobs_with_and_without_a_key_are_enqueued_together_in_a_snapshot(keyed):
    requests = [JobRequest("test.echo")] * 2
    requests += [JobRequest("test.echo", dedup_key=f"key-{number}") for number in range(keyed)]

    with transaction.atomic():
        begin_repeatable_read()
        made = Job.objects.enqueue_many(requests)

    assert set(Job.objects.values_list("pk", flat=True)) == {job.pk for job in made}
    assert len(made) == 2 + keyed


@on_postgresql
def test_a_wait_that_is_cut_short_in_a_snapshot_is_no_conflict():
    options = {"isolation_level": LEVELS["repeatable read"], "options": "-c lock_timeout=50"}
    with alias("snapshot", OPTIONS=options):
        connections["snapshot"].connect()
        with transaction.atomic():
            Job.objects.enqueue("test.echo", dedup_key="once")
            with transaction.atomic(using="snapshot"), pytest.raises(OperationalError) as cut:
                Job.objects.db_manager("snapshot").enqueue("test.echo", dedup_key="once")

    assert not is_conflict(cut.value)
    assert Job.objects.count() == 1
