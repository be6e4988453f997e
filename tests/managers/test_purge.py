import os
import threading
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import override_settings

from django_jobqueue import job_handler, registry
from django_jobqueue.handlers import purge
from django_jobqueue.managers import upkeep
from django_jobqueue.models import Job, JobAttempt, JobStatsRollup
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.databases import POSTGRESQL, chosen_kind
from tests.managers.rows import (
    HOUR,
    Aside,
    backend_that_waits,
    claimed,
    now,
    saved,
    unsaved,
)

OLD = timedelta(days=31)
RETENTION = timedelta(days=30)
DAY = timedelta(days=1)
ENDED = (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)

pytestmark = pytest.mark.django_db
real_transactions = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(chosen_kind(os.environ) != POSTGRESQL, reason="PostgreSQL only")

TOTALS = """
SELECT sum(succeeded), sum(failed), sum(cancelled), sum(samples) FROM (
    SELECT
        CASE status WHEN 'succeeded' THEN 1 ELSE 0 END AS succeeded,
        CASE status WHEN 'failed' THEN 1 ELSE 0 END AS failed,
        CASE status WHEN 'cancelled' THEN 1 ELSE 0 END AS cancelled,
        CASE WHEN status = 'succeeded' AND finished_at >= started_at THEN 1 ELSE 0 END AS samples
    FROM django_jobqueue_job
    UNION ALL
    SELECT succeeded_count, failed_count, cancelled_count, duration_samples
    FROM django_jobqueue_jobstatsrollup
) AS counted
"""


def totals():
    """Lifetime counts as one statement sees them."""
    with connection.cursor() as cursor:
        cursor.execute(TOTALS)
        return tuple(int(count) for count in cursor.fetchone())


def unsaved_at(moment, job_type):
    """Return a job of the type that ended at that moment."""
    return Job(
        type=job_type,
        status=JobStatus.CANCELLED,
        created_at=moment,
        ready_at=moment,
        finished_at=moment,
    )


def rows_read(model):
    """Return how many rows of a table this transaction has read so far, by PostgreSQL's count."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
            " WHERE relid = %s::regclass",
            [model._meta.db_table],
        )
        return cursor.fetchone()[0]


def history(count, *, age=OLD):
    """Insert that many ended jobs of three types and all ends, a failed one with an attempt."""
    jobs = [
        unsaved(ENDED[n % 3], job_type=f"test.{'cab'[n % 7 % 3]}", age=age) for n in range(count)
    ]
    ids = saved(*jobs)
    JobAttempt.objects.bulk_create(
        JobAttempt(job=job, number=1, outcome=SettleOutcome.FAILED, finished_at=job.finished_at)
        for job in jobs
        if job.status == JobStatus.FAILED
    )
    return ids


@pytest.fixture
def broken_rollup(transactional_db):
    """Make the database refuse to count more than ten successes of a type."""
    table = JobStatsRollup._meta.db_table
    if connection.vendor == "postgresql":
        make = f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no more'; END $$;
            CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW
            WHEN (NEW.succeeded_count > 10) EXECUTE FUNCTION refuse()
        """
        drop = "DROP FUNCTION IF EXISTS refuse CASCADE"
    else:
        make = f"""
            CREATE TRIGGER refuse BEFORE UPDATE ON {table} WHEN NEW.succeeded_count > 10
            BEGIN SELECT RAISE(ABORT, 'no more'); END
        """
        drop = "DROP TRIGGER IF EXISTS refuse"

    def run(sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)

    run(make)
    yield lambda: run(drop)
    run(drop)


def test_only_old_ended_jobs_go():
    saved(*(unsaved(status, age=OLD) for status in ENDED))
    stay = saved(
        unsaved(JobStatus.PENDING, age=OLD),
        unsaved(JobStatus.RUNNING, age=OLD),
        *(unsaved(status, age=RETENTION - HOUR) for status in ENDED),
    )

    assert Job.objects.purge(RETENTION) == 3
    assert set(Job.objects.values_list("pk", flat=True)) == set(stay)


def test_the_rollup_counts_each_type_and_adds_up_its_durations():
    seconds = timedelta(seconds=1)
    saved(
        unsaved(JobStatus.SUCCEEDED, job_type="test.a", age=OLD, lasted=3 * seconds),
        unsaved(JobStatus.SUCCEEDED, job_type="test.a", age=OLD, lasted=1.5 * seconds),
        unsaved(JobStatus.SUCCEEDED, job_type="test.a", age=OLD, lasted=-4 * seconds),
        unsaved(JobStatus.SUCCEEDED, job_type="test.a", age=OLD, started_at=None),
        unsaved(JobStatus.FAILED, job_type="test.a", age=OLD, lasted=9 * seconds),
        unsaved(JobStatus.CANCELLED, job_type="test.b", age=OLD, started_at=None),
    )

    Job.objects.purge(RETENTION)

    rollups = JobStatsRollup.objects.order_by("type").values_list(
        "type",
        "succeeded_count",
        "failed_count",
        "cancelled_count",
        "duration_sum",
        "duration_samples",
    )
    assert list(rollups) == [("test.a", 4, 1, 0, 4.5, 2), ("test.b", 0, 0, 1, 0.0, 0)]


def test_the_rollup_adds_to_what_it_counted_before():
    for _ in range(2):
        saved(unsaved(JobStatus.SUCCEEDED, age=OLD))
        Job.objects.purge(RETENTION)

    rollup = JobStatsRollup.objects.get()
    assert (rollup.succeeded_count, rollup.duration_sum, rollup.duration_samples) == (2, 4.0, 2)


def test_attempts_go_with_their_jobs_and_others_stay():
    history(6)
    history(3, age=HOUR)

    assert Job.objects.purge(RETENTION) == 6
    assert JobAttempt.objects.count() == 1


def test_a_batch_is_bounded_and_the_oldest_go_first():
    young = saved(*(unsaved(JobStatus.FAILED, age=OLD) for _ in range(3)))
    saved(*(unsaved(JobStatus.FAILED, age=2 * OLD) for _ in range(4)))

    assert Job.objects.purge(RETENTION, batch_size=2, batches=2) == 4
    assert set(Job.objects.values_list("pk", flat=True)) == set(young)
    assert Job.objects.purge(RETENTION, batch_size=2) == 3
    assert Job.objects.purge(RETENTION) == 0


def test_only_jobs_of_the_types_asked_for_go():
    names = ("test.a", "test.b", "test.100%{done}")
    saved(*(unsaved(JobStatus.FAILED, job_type=name, age=OLD) for name in names))

    def left():
        return set(Job.objects.values_list("type", flat=True))

    assert Job.objects.purge(RETENTION, types=[]) == 0
    assert Job.objects.purge(RETENTION, types=["test.none"], except_types=["test.a"]) == 0
    assert Job.objects.purge(RETENTION, types=iter(["test.a"])) == 1
    assert left() == {"test.b", "test.100%{done}"}
    assert Job.objects.purge(RETENTION, except_types=["test.100%{done}"]) == 1
    assert left() == {"test.100%{done}"}
    assert Job.objects.purge(RETENTION, types=["test.100%{done}"]) == 1


def test_none_is_left_out_when_many_ended_at_the_same_moment():
    moment = Job.objects.now() - OLD
    saved(
        *(
            unsaved(JobStatus.FAILED, job_type=f"test.{'ab'[n % 2]}", age=OLD, finished_at=moment)
            for n in range(20)
        ),
        *(unsaved(JobStatus.SUCCEEDED, job_type="test.a", age=OLD) for _ in range(5)),
    )

    assert Job.objects.purge(RETENTION, types=["test.a"], batch_size=3) == 15
    assert Job.objects.purge(RETENTION, except_types=["test.b"]) == 0
    assert Job.objects.filter(type="test.b").count() == Job.objects.count() == 10


def test_it_stops_before_the_batch_it_is_told_to():
    history(10)
    asked = iter([False, False, True])

    assert Job.objects.purge(RETENTION, batch_size=2, stop=lambda: next(asked)) == 4
    assert Job.objects.count() == 6


@pytest.fixture
def long_kept():
    """20,000 jobs of a type that is kept, then 1,500 that are not, all of them old."""
    begun, kept = now() - 2 * OLD, 20_000
    jobs = (
        unsaved_at(begun + n * timedelta(seconds=1), "test.kept" if n < kept else "test.short")
        for n in range(kept + 1500)
    )
    Job.objects.bulk_create(jobs, batch_size=2000)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Job._meta.db_table}")
    yield kept
    assert Job.objects.filter(type="test.kept").count() == kept


def readings_of_a_purge(**options):
    """Purge in batches of 500; return how many rows were read for each of them."""
    readings = []

    def look():
        readings.append(rows_read(Job))
        return False

    assert Job.objects.purge(RETENTION, batch_size=500, stop=look, **options) == 1500
    readings.append(rows_read(Job))
    return [after - before for before, after in pairwise(readings)]


@on_postgresql
@pytest.mark.parametrize("options", [{"types": ["test.short"]}, {"except_types": ["test.kept"]}])
def test_what_is_kept_longer_is_not_read_for_every_batch(long_kept, monkeypatch, options):
    monkeypatch.setattr(upkeep, "STRETCH", 2 * long_kept)

    first, *later = readings_of_a_purge(**options)

    assert first >= long_kept
    assert len(later) == 3
    # Each row by the pick and by the deletion, and what the index still shows of the last batch.
    assert max(later) < 5 * 500


@on_postgresql
def test_a_statement_reads_a_stretch_however_many_are_kept(long_kept, monkeypatch):
    monkeypatch.setattr(upkeep, "STRETCH", 2000)

    readings = readings_of_a_purge(types=["test.short"])

    assert len(readings) == 10 + 4
    assert max(readings) < 3 * 2000


def test_no_job_is_left_out_at_the_end_of_a_stretch(monkeypatch):
    monkeypatch.setattr(upkeep, "STRETCH", 5)
    moments = [Job.objects.now() - age for age in (3 * OLD, 2 * OLD, OLD)]
    jobs = [
        unsaved_at(moment, f"test.{'ab'[n % 2]}")
        for count, moment in zip((7, 12, 11), moments, strict=True)
        for n in range(count)
    ]
    Job.objects.bulk_create(jobs)

    assert Job.objects.purge(RETENTION, types=["test.a"], batch_size=2, batches=3) == 6
    assert Job.objects.purge(RETENTION, types=["test.a"], batch_size=2) == 10
    assert set(Job.objects.values_list("type", flat=True)) == {"test.b"}
    assert Job.objects.purge(RETENTION, except_types=["test.a"], batch_size=2) == 14


def test_nothing_more_is_looked_for_once_it_is_told_to_stop(
    monkeypatch, django_assert_max_num_queries
):
    monkeypatch.setattr(upkeep, "STRETCH", 1)
    history(10)

    with django_assert_max_num_queries(2):  # The clock, and the first stretch.
        assert Job.objects.purge(RETENTION, except_types=["test.z"], stop=lambda: True) == 0


@on_postgresql
def test_a_batch_is_one_statement(django_assert_num_queries):
    history(5)

    with django_assert_num_queries(4):  # The clock, the savepoint around compiling, the one.
        Job.objects.purge(RETENTION, batch_size=10)


@real_transactions
def test_totals_are_the_same_before_during_and_after():
    history(300)
    before, done = totals(), threading.Event()

    def watch():
        seen = Counter()
        while not done.is_set():
            seen[totals()] += 1
        return seen

    watcher = Aside(watch)
    try:
        purged = Job.objects.purge(RETENTION, batch_size=20)
    finally:
        done.set()

    assert purged == 300
    assert set(watcher.answer()) <= {before}
    assert totals() == before


@real_transactions
def test_two_purges_and_a_deletion_at_once_lose_no_count():
    history(300)
    chosen = saved(*(unsaved(ENDED[n % 3], job_type=f"test.{'abc'[n % 2]}") for n in range(90)))
    before = totals()

    purges = [Aside(lambda: Job.objects.purge(RETENTION, batch_size=7)) for _ in range(2)]
    deletion = Aside(lambda: Job.objects.delete_jobs(chosen, batch_size=7))
    purged = sum(one.answer() for one in purges)
    purged += Job.objects.purge(RETENTION)

    assert purged == 300
    assert deletion.answer() == set(chosen)
    assert totals() == before
    assert not Job.objects.exists()


def test_a_batch_that_breaks_changes_nothing(broken_rollup):
    saved(*(unsaved(JobStatus.SUCCEEDED, age=OLD) for _ in range(25)))
    before = totals()

    with pytest.raises(DatabaseError, match="no more"):
        Job.objects.purge(RETENTION, batch_size=10)
    assert Job.objects.count() == 15
    assert totals() == before

    with pytest.raises(DatabaseError, match="no more"):
        Job.objects.delete_jobs(Job.objects.all(), batch_size=10)
    assert Job.objects.count() == 15
    assert totals() == before

    broken_rollup()
    Job.objects.purge(RETENTION, batch_size=10)
    assert totals() == before
    assert not Job.objects.exists()


@on_postgresql
@real_transactions
def test_a_purge_that_is_cut_off_half_way_changes_nothing():
    history(30)
    JobStatsRollup.objects.create(type="test.b")
    before = totals()

    with transaction.atomic():
        JobStatsRollup.objects.select_for_update().get()
        purging = Aside(lambda: Job.objects.purge(RETENTION))
        waiting = backend_that_waits()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [waiting])
        with pytest.raises(DatabaseError):
            purging.answer()

    assert Job.objects.count() == 30
    assert totals() == before
    assert Job.objects.purge(RETENTION) == 30
    assert totals() == before


@on_postgresql
@real_transactions
def test_a_job_that_is_retried_meanwhile_stays():
    kept, gone = saved(*(unsaved(JobStatus.FAILED, age=OLD) for _ in range(2)))

    with transaction.atomic():
        Job.objects.retry(kept)
        assert Aside(lambda: Job.objects.purge(RETENTION)).answer() == 1

    assert Job.objects.purge(RETENTION) == 0
    assert Job.objects.get().status == JobStatus.PENDING
    assert gone != Job.objects.get().pk


def test_deletion_refuses_running_jobs_and_counts_only_ended_ones():
    running = claimed()
    pending = Job.objects.enqueue("test.none")
    ended = saved(*(unsaved(status) for status in ENDED))
    before = totals()

    deleted = Job.objects.delete_jobs([running, pending, *ended])

    assert deleted == {pending.pk, *ended}
    assert Job.objects.get() == running
    assert totals() == before
    rollup = JobStatsRollup.objects.get()
    assert (rollup.succeeded_count, rollup.failed_count, rollup.cancelled_count) == (1, 1, 1)


def test_deleting_a_pending_job_leaves_no_trace():
    job = Job.objects.enqueue("test.none")

    assert Job.objects.delete_jobs(job) == {job.pk}
    assert not JobStatsRollup.objects.exists()
    assert Job.objects.delete_jobs(job.pk) == set()
    assert Job.objects.delete_jobs([]) == set()


@on_postgresql
@real_transactions
def test_deletion_leaves_a_locked_job_alone():
    job = Job.objects.enqueue("test.none")

    with transaction.atomic():
        Job.objects.select_for_update().get()
        assert Aside(lambda: Job.objects.delete_jobs(job)).answer() == set()

    assert Job.objects.exists()


class TestHandler:
    def test_it_is_registered_under_the_name_that_schedules_use(self):
        assert registry.get("jobqueue.history.purge") is purge.purge_history
        assert purge.PURGE_PRIORITY == 100

    @pytest.mark.parametrize("value", [False, "no"])
    def test_it_is_not_registered_when_the_site_wants_no_purge(self, value, monkeypatch):
        monkeypatch.setattr(registry, "_handlers", {})

        with override_settings(JOBQUEUE={"PURGE_ENABLED": value}):
            purge.register()

        assert registry.types() == ()

    def test_it_deletes_what_is_older_than_the_retention(self):
        history(3)
        history(3, age=HOUR)
        [job] = saved(unsaved(JobStatus.RUNNING, job_type=purge.PURGE_TYPE))
        job = Job.objects.get(pk=job)

        assert purge.purge_history.process(job) == {"purged": 3}
        with override_settings(JOBQUEUE={"HISTORY_RETENTION": timedelta(minutes=30)}):
            assert purge.purge_history.process(job) == {"purged": 3}

    def test_a_type_with_a_retention_of_its_own_is_kept_for_that_long(self, monkeypatch):
        own = {"test.short": HOUR, "test.brief": 3600, "test.long": 365 * DAY, "test.site": None}
        monkeypatch.setattr(registry, "_handlers", {})
        for name, kept_for in own.items():
            job_handler(name, history_retention=kept_for)(lambda job: None)
        ages = (HOUR / 2, 2 * HOUR, OLD, 366 * DAY)
        types = [*own, "test.unknown"]
        saved(*(unsaved(JobStatus.FAILED, job_type=t, age=age) for t in types for age in ages))
        [job] = saved(unsaved(JobStatus.RUNNING, job_type=purge.PURGE_TYPE))

        assert purge.purge_history.process(Job.objects.get(pk=job)) == {"purged": 11}

        left = Counter(Job.objects.terminal().values_list("type", flat=True))
        assert left == {
            "test.short": 1,
            "test.brief": 1,
            "test.long": 3,
            "test.site": 2,
            "test.unknown": 2,
        }
        rollups = JobStatsRollup.objects.values_list("type", "failed_count")
        assert dict(rollups) == {name: 4 - count for name, count in left.items()}

    def test_it_stops_between_batches_once_its_claim_is_lost(self):
        history(3)
        job = SimpleNamespace(claim_lost=True, _state=SimpleNamespace(db="default"))

        assert purge.purge_history.process(job) == {"purged": 0}
        assert Job.objects.count() == 3
