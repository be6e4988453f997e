"""The bulk transitions of operators: what they report, and what they do beside each other."""

import time
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction

from django_jobqueue import wakeups
from django_jobqueue.database import Operating
from django_jobqueue.managers import bulk
from django_jobqueue.models import Job, JobStatsRollup
from django_jobqueue.signals import job_settled
from django_jobqueue.states import BulkReport, JobStatus, RetryResult, SkipReason
from tests.factories import JobFactory
from tests.managers.rows import HOUR, THRESHOLD, another_connection, expired, now, saved, unsaved
from tests.marks import committed, on_postgresql
from tests.threads import together

pytestmark = pytest.mark.django_db

FAILED, PENDING, CANCELLED = JobStatus.FAILED, JobStatus.PENDING, JobStatus.CANCELLED
NO_TIME = timedelta(0)


def make(count, status=FAILED, **columns):
    return saved(*(unsaved(status, **columns) for _ in range(count)))


def statuses():
    return list(Job.objects.order_by("pk").values_list("status", flat=True))


def reset(jobs, **options):
    return Job.objects.reset_stuck(jobs, THRESHOLD, 3, **options)


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(bulk, "BULK_BATCH", 3)
    monkeypatch.setattr("django_jobqueue.managers.operations.BULK_BATCH", 3)


@contextmanager
def locked(*ids):
    """Hold the rows of jobs from another connection."""
    with another_connection() as other:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM django_jobqueue_job WHERE id = ANY(%s) FOR UPDATE", [list(ids)]
            )
            yield
        other.rollback()


class TestAReport:
    def test_of_retries_counts_what_was_done_and_why_others_were_left(self, small_batches):
        make(5, dedup_key=None)
        make(2, CANCELLED)
        make(3, JobStatus.RUNNING)
        make(1, JobStatus.SUCCEEDED)
        make(1, PENDING, dedup_key="taken")
        make(2, dedup_key="taken")

        report = Job.objects.retry_all(Job.objects.all())

        assert report == BulkReport(
            7, {SkipReason.RUNNING: 3, SkipReason.STATE: 2, SkipReason.DUPLICATE: 2}, 0
        )
        assert report.skipped == 7
        assert Job.objects.pending().count() == 8

    def test_of_cancels(self, small_batches):
        make(4, PENDING)
        make(1, PENDING, scheduled_for=now() + HOUR)
        make(2, JobStatus.RUNNING)
        make(1)

        report = Job.objects.cancel_all(Job.objects.all())

        assert report == BulkReport(5, {SkipReason.RUNNING: 2, SkipReason.STATE: 1}, 0)

    def test_of_deletes(self, small_batches):
        for status in JobStatus:
            make(4, status)

        report = Job.objects.delete_all(Job.objects.all())

        assert report == BulkReport(16, {SkipReason.RUNNING: 4}, 0)
        rollup = JobStatsRollup.objects.get()
        assert (rollup.succeeded_count, rollup.failed_count, rollup.cancelled_count) == (4, 4, 4)

    def test_of_resets(self, small_batches):
        for _ in range(4):
            expired()
        make(2, JobStatus.RUNNING)
        make(1)

        report = reset(Job.objects.all())

        assert report == BulkReport(4, {SkipReason.RUNNING: 2, SkipReason.STATE: 1}, 0)
        assert Job.objects.pending().count() == 4

    def test_names_only_the_jobs_that_were_asked_for(self):
        make(2, queue="mail")
        make(3)

        assert Job.objects.retry_all(Job.objects.filter(queue="mail")) == BulkReport(2)
        assert statuses() == [PENDING] * 2 + [FAILED] * 3

    def test_of_nothing(self):
        for transition in (
            Job.objects.retry_all,
            Job.objects.cancel_all,
            Job.objects.delete_all,
            reset,
        ):
            assert transition(Job.objects.all()) == BulkReport(0)


class TestTheLimit:
    def test_leaves_the_rest_for_another_call(self, small_batches):
        make(10)

        first = Job.objects.retry_all(Job.objects.all(), limit=4)

        assert first == BulkReport(4, {}, 6)
        assert statuses() == [PENDING] * 4 + [FAILED] * 6
        again = Job.objects.retry_all(Job.objects.filter(status=FAILED), limit=6)
        assert again == BulkReport(6, {}, 0)

    def test_of_zero_says_what_would_be_done(self):
        make(3)
        make(2, PENDING)

        report = Job.objects.retry_all(Job.objects.all(), limit=0)

        assert report == BulkReport(0, {SkipReason.STATE: 2}, 3)
        assert Job.objects.retryable().count() == 3

    @pytest.mark.parametrize(
        ("status", "change"),
        [
            (PENDING, Job.objects.cancel_all),
            (FAILED, Job.objects.retry_all),
            (FAILED, Job.objects.delete_all),
        ],
    )
    def test_of_time_ends_a_call_after_a_whole_batch(self, small_batches, status, change):
        make(10, status)

        assert change(Job.objects.all(), within=NO_TIME) == BulkReport(3, {}, 7)

    def test_is_counted_no_further_than_people_are_told(self, monkeypatch):
        monkeypatch.setattr(bulk, "COUNT_LIMIT", 5)
        make(10)

        assert Job.objects.retry_all(Job.objects.all(), limit=2).remaining == 5

    def test_is_not_used_up_by_jobs_whose_key_stays_taken(self):
        make(1, PENDING, dedup_key="taken")
        make(5, dedup_key="taken")
        make(2)

        report = Job.objects.retry_all(Job.objects.all(), limit=2)

        assert (report.done, report.remaining) == (2, 0)

    def test_bounds_the_statements_of_a_call(self, django_assert_max_num_queries):
        make(50)

        with django_assert_max_num_queries(20):
            Job.objects.retry_all(Job.objects.all())


class TestDedupKeys:
    def test_of_two_jobs_with_one_key_the_older_one_wins(self):
        older, newer = make(2, dedup_key="once")
        other = make(1)

        report = Job.objects.retry_all(Job.objects.all())

        assert report == BulkReport(2, {SkipReason.DUPLICATE: 1}, 0)
        assert set(Job.objects.pending().values_list("pk", flat=True)) == {older, *other}
        assert Job.objects.get(pk=newer).status == FAILED

    @committed
    @on_postgresql
    def test_a_key_that_is_taken_between_look_and_write_costs_only_its_own_job(self, monkeypatch):
        ids = make(9)
        keyed = saved(unsaved(FAILED, dedup_key="late"), unsaved(FAILED, dedup_key="free"))
        look = Operating._split_by_key

        def look_and_be_late(self, jobs):
            answer = look(self, jobs)
            together(lambda: JobFactory(dedup_key="late"))
            return answer

        monkeypatch.setattr(Operating, "_split_by_key", look_and_be_late)

        report = Job.objects.retry_all(Job.objects.all())

        assert report == BulkReport(10, {SkipReason.DUPLICATE: 1}, 0)
        assert Job.objects.get(pk=keyed[0]).status == FAILED
        assert Job.objects.filter(pk__in=[*ids, keyed[1]], status=PENDING).count() == 10

    @committed
    @on_postgresql
    def test_a_key_that_an_open_transaction_is_taking_is_not_waited_for(self):
        [disputed, free] = saved(
            unsaved(FAILED, dedup_key="disputed"), unsaved(FAILED, dedup_key="free")
        )
        with another_connection() as other:
            other.set_autocommit(False)
            with other.cursor() as cursor:
                cursor.execute(
                    "UPDATE django_jobqueue_job SET status = 'pending', finished_at = NULL"
                    " WHERE id = %s",
                    saved(unsaved(FAILED, dedup_key="disputed")),
                )
            began = time.monotonic()
            report = Job.objects.retry_all(Job.objects.filter(pk__in=[disputed, free]))
            took = time.monotonic() - began
            other.rollback()

        assert report == BulkReport(1, {SkipReason.LOCKED: 1}, 0)
        assert took < 5
        assert statuses()[:2] == [FAILED, PENDING]
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)


@pytest.fixture
def events():
    """What `job_settled` told."""
    told = []

    def listen(sender, event, **others):
        told.append(event)

    job_settled.connect(listen)
    yield told
    job_settled.disconnect(listen)


@pytest.fixture
def wake_ups():
    """What the pools of this process are told."""
    told = []
    wakeups.subscribe(told.append)
    yield told
    wakeups.unsubscribe(told.append)


@committed
class TestWhoIsTold:
    def test_of_cancels_once_each(self, events, small_batches):
        ids = make(4, PENDING)

        Job.objects.cancel_all(Job.objects.all())

        assert sorted(event.job_id for event in events) == sorted(ids)
        assert {event.status for event in events} == {CANCELLED}

    def test_of_resets_that_failed(self, events):
        spent, waiting = expired(max_attempts=1), expired(max_attempts=2)

        reset(Job.objects.all())

        assert [(event.job_id, event.status) for event in events] == [(spent.pk, FAILED)]
        assert Job.objects.get(pk=waiting.pk).status == PENDING

    def test_of_retries_after_the_commit(self, wake_ups):
        make(2, queue="mail")
        with transaction.atomic():
            Job.objects.retry_all(Job.objects.all())
            assert wake_ups == []

        assert [(w.queue, w.types, w.ready) for w in wake_ups] == [("mail", {"test.none"}, True)]

    def test_of_resets_that_wait_again(self, wake_ups):
        expired(queue="mail")

        reset(Job.objects.all())

        assert [wake_up.queue for wake_up in wake_ups][-1:] == ["mail"]


@committed
@on_postgresql
class TestBesideOthers:
    @pytest.mark.parametrize(
        ("status", "change"),
        [
            (FAILED, lambda: Job.objects.retry_all(Job.objects.all())),
            (PENDING, lambda: Job.objects.cancel_all(Job.objects.all())),
            (FAILED, lambda: Job.objects.delete_all(Job.objects.all())),
        ],
        ids=["retry", "cancel", "delete"],
    )
    def test_a_locked_row_is_skipped_and_reported(self, status, change):
        ids = make(5, status)
        with locked(ids[2]):
            began = time.monotonic()
            report = change()
            took = time.monotonic() - began

        assert report == BulkReport(4, {SkipReason.LOCKED: 1}, 0)
        assert took < 5
        assert Job.objects.get(pk=ids[2]).status == status

    def test_a_locked_row_is_skipped_by_its_id_too(self):
        waiting, ended = make(1, PENDING) + make(1, FAILED)
        with locked(waiting, ended):
            assert Job.objects.cancel(waiting) == set()
            assert Job.objects.retry(ended) == {ended: RetryResult.LOCKED}

    def test_a_locked_row_is_not_reset(self):
        job = expired()
        with locked(job.pk):
            assert reset(Job.objects.all()) == BulkReport(0, {SkipReason.LOCKED: 1}, 0)

    @pytest.mark.parametrize(
        ("status", "change", "after"),
        [
            (FAILED, lambda: Job.objects.retry_all(Job.objects.filter(status=FAILED)), PENDING),
            (PENDING, lambda: Job.objects.cancel_all(Job.objects.pending()), CANCELLED),
        ],
        ids=["retry", "cancel"],
    )
    def test_two_at_once_do_each_job_once(self, status, change, after):
        make(3000, status)

        first, second = together(change, change)

        assert first.done + second.done == 3000
        assert set(statuses()) == {after}

    def test_two_retries_that_want_each_other_s_keys_both_end(self):
        keys = [f"key-{number:03}" for number in range(200)]
        made = saved(
            *(unsaved(FAILED, queue="a", dedup_key=key) for key in keys),
            *(unsaved(FAILED, queue="b", dedup_key=key) for key in reversed(keys)),
        )

        def retry(queue):
            return lambda: Job.objects.retry_all(Job.objects.filter(queue=queue))

        together(retry("a"), retry("b"))
        Job.objects.retry_all(Job.objects.all())

        active = Job.objects.active().filter(pk__in=made)
        assert sorted(active.values_list("dedup_key", flat=True)) == keys
        assert Job.objects.filter(status=FAILED).count() == 200

    def test_cancel_and_retry_of_one_set_at_once_leave_whole_rows(self):
        make(1000, FAILED)

        def change():
            for _ in range(3):
                Job.objects.retry_all(Job.objects.all())
                Job.objects.cancel_all(Job.objects.all())

        together(change, change)

        for job in Job.objects.all():
            assert (job.status, job.finished_at is None) in {(PENDING, True), (CANCELLED, False)}

    def test_a_batch_that_fails_writes_nothing_of_itself(self, monkeypatch, small_batches):
        make(5)
        change = Operating._change

        def break_off(self, jobs, states, **columns):
            change(self, jobs, states, **columns)
            raise ZeroDivisionError

        monkeypatch.setattr(Operating, "_change", break_off)

        with pytest.raises(ZeroDivisionError):
            Job.objects.retry_all(Job.objects.all())
        assert set(statuses()) == {FAILED}


def test_a_job_that_changed_since_it_was_chosen_is_reported(monkeypatch):
    gone, claimed_since, ended_since, ready = make(4, PENDING)
    cancel = Operating.cancel

    def late(self, ids):
        Job.objects.filter(pk=gone).delete()
        Job.objects.filter(pk=claimed_since).update(status="running", claim_token=gone)
        Job.objects.filter(pk=ended_since).update(status="succeeded")
        return cancel(self, ids)

    monkeypatch.setattr(Operating, "cancel", late)

    report = Job.objects.cancel_all(Job.objects.all())

    assert report == BulkReport(
        1, dict.fromkeys((SkipReason.GONE, SkipReason.RUNNING, SkipReason.STATE), 1), 0
    )
    assert Job.objects.get(pk=ready).status == CANCELLED


def move_on(monkeypatch, *, to, after=1):
    """Let somebody move every job of the queue `default` on, once so many batches are done."""
    batches = []
    take = bulk.Sweep._take

    def late(self, ids):
        if len(batches) == after:
            Job.objects.filter(queue="default").update(**to)
        batches.append(ids)
        take(self, ids)

    monkeypatch.setattr(bulk.Sweep, "_take", late)


@pytest.mark.parametrize(
    ("change", "status", "to"),
    [
        (Job.objects.delete_all, FAILED, {"status": PENDING, "finished_at": None}),
        (Job.objects.delete_all, FAILED, {"queue": "other"}),
        (Job.objects.cancel_all, PENDING, {"queue": "other"}),
        (Job.objects.retry_all, FAILED, {"queue": "other"}),
        (reset, JobStatus.RUNNING, {"queue": "other"}),
    ],
)
def test_jobs_that_left_the_filter_meanwhile_stay_as_they_are(
    monkeypatch, small_batches, change, status, to
):
    if status == JobStatus.RUNNING:
        for _ in range(5):
            expired()
    else:
        make(5, status)
    move_on(monkeypatch, to=to)

    report = change(Job.objects.filter(queue="default", status=status))

    assert (report.done, report.skipped, report.remaining) == (3, 2, 0)
    assert Job.objects.filter(**{"status": status, **to}).count() == 2


class TestATransitionThatTheDatabaseEnds:
    def fail(self, monkeypatch, after):
        batches = []
        take = bulk.Sweep._take

        def late(self, ids):
            batches.append(ids)
            if len(batches) > after:
                raise OperationalError("canceling statement due to statement timeout")
            take(self, ids)

        monkeypatch.setattr(bulk.Sweep, "_take", late)

    @pytest.mark.usefixtures("transactional_db")
    def test_reports_what_was_done_before(self, monkeypatch, small_batches):
        make(8)
        self.fail(monkeypatch, after=2)

        report = Job.objects.retry_all(Job.objects.all())

        assert (report.done, report.remaining) == (6, 2)
        assert isinstance(report.error, OperationalError)
        assert statuses().count(PENDING) == 6

    @pytest.mark.usefixtures("transactional_db")
    def test_raises_where_nothing_was_done(self, monkeypatch, small_batches):
        make(4)
        self.fail(monkeypatch, after=0)

        with pytest.raises(OperationalError):
            Job.objects.retry_all(Job.objects.all())
        assert set(statuses()) == {FAILED}

    def test_raises_inside_a_transaction_of_the_caller(self, monkeypatch, small_batches):
        make(8)
        self.fail(monkeypatch, after=2)

        with pytest.raises(OperationalError), transaction.atomic():
            Job.objects.retry_all(Job.objects.all())
        assert set(statuses()) == {FAILED}


def test_inside_a_transaction_it_is_undone_with_it():
    make(3)

    with transaction.atomic():
        assert Job.objects.retry_all(Job.objects.all()).done == 3
        transaction.set_rollback(True)

    assert set(statuses()) == {FAILED}
