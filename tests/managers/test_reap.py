import os
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.db.models import CharField, Func, Value
from django.db.models.functions import Cast
from django.utils import timezone

from django_jobqueue.database import ReapRequest
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.signals import job_settled, send_reaped
from django_jobqueue.states import (
    Attempt,
    Changes,
    Decision,
    JobStatus,
    SettleOutcome,
    StuckSignal,
)
from tests.databases import POSTGRESQL, chosen_kind
from tests.managers.rows import (
    HOUR,
    LEASE,
    THRESHOLD,
    Aside,
    another_connection,
    backend_that_waits,
    claimed,
    expired,
    now,
    saved,
    unsaved,
)

SECOND = timedelta(seconds=1)

pytestmark = pytest.mark.django_db
real_transactions = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(chosen_kind(os.environ) != POSTGRESQL, reason="PostgreSQL only")


def reap(**options):
    return Job.objects.reap(THRESHOLD, 3, **options)


def succeed(job):
    attempt = Attempt(job.attempts, job.worker, job.started_at)
    changes = Changes(JobStatus.SUCCEEDED, result={"done": True})
    return Job.objects.settle([Decision(job.claim, SettleOutcome.SUCCEEDED, changes, attempt)])


SHOWN = {
    StuckSignal.LEASE_EXPIRED: lambda: {"lease_expires_at": now() - SECOND},
    StuckSignal.NO_LEASE: lambda: {
        "lease_expires_at": None,
        "started_at": now() - THRESHOLD - SECOND,
    },
    StuckSignal.NEVER_STARTED: lambda: {
        "lease_expires_at": None,
        "started_at": None,
        "created_at": now() - THRESHOLD - SECOND,
    },
    StuckSignal.LEASE_TOO_FAR: lambda: {
        "lease_expires_at": now() + LEASE + timedelta(seconds=62),
    },
}
NOT_QUITE_SHOWN = {
    StuckSignal.LEASE_EXPIRED: lambda: {"lease_expires_at": now() + timedelta(seconds=30)},
    StuckSignal.NO_LEASE: lambda: {
        "lease_expires_at": None,
        "started_at": now() - THRESHOLD + timedelta(seconds=30),
        "created_at": now() - THRESHOLD * 2,
    },
    StuckSignal.NEVER_STARTED: lambda: {
        "lease_expires_at": None,
        "started_at": None,
        "created_at": now() - THRESHOLD + timedelta(seconds=30),
    },
    StuckSignal.LEASE_TOO_FAR: lambda: {
        "lease_expires_at": now() + LEASE + timedelta(seconds=58),
    },
}


@pytest.mark.parametrize("signal", StuckSignal)
def test_each_signal_alone_ends_a_claim(signal):
    job = claimed(**SHOWN[signal]())

    [reaped] = reap()

    job.refresh_from_db()
    assert (reaped.job_id, reaped.signal, reaped.status) == (job.pk, signal, JobStatus.PENDING)
    assert (job.status, job.claim, job.lease_expires_at) == (JobStatus.PENDING, None, None)


@pytest.mark.parametrize("signal", StuckSignal)
def test_just_short_of_a_signal_a_claim_holds(signal):
    job = claimed(**NOT_QUITE_SHOWN[signal]())

    assert reap() == []
    job.refresh_from_db()
    assert job.claim is not None


@pytest.mark.parametrize("damage", [None, -1.0, 1e300], ids=str)
def test_a_damaged_lease_length_breaks_nothing(damage):
    damaged = claimed(lease_seconds=damage, lease_expires_at=now() + timedelta(days=20_000))
    job = expired()

    assert {reaped.job_id for reaped in reap()} == {damaged.pk, job.pk}


def test_a_job_with_budget_left_waits_again_with_its_attempt_charged():
    job = expired(attempts=2, max_attempts=3)

    [reaped] = reap()

    job.refresh_from_db()
    assert not reaped.failed
    assert (job.status, job.attempts, job.scheduled_for) == (JobStatus.PENDING, 2, None)
    assert now() - job.ready_at < timedelta(seconds=30)
    assert (job.finished_at, job.last_error, job.worker) == (None, "", "elsewhere:1:1")
    [again] = Job.objects.claim([uuid4()], {job.type: LEASE})
    assert (again.pk, again.attempts) == (job.pk, 3)


def test_a_job_with_its_budget_spent_fails_and_says_that_its_worker_died():
    job = expired(attempts=3, max_attempts=3)

    [reaped] = reap()

    job.refresh_from_db()
    assert reaped.failed
    assert (job.status, job.claim, job.attempts) == (JobStatus.FAILED, None, 3)
    assert job.finished_at is not None
    assert job.last_error == reaped.error.last_error
    assert job.last_error == (
        "WorkerDied: attempt 3 of 3 did not end: its worker, elsewhere:1:1, died or lost its "
        "claim (lease-expired)"
    )


@pytest.mark.parametrize(("budget", "failed"), [(1, True), (2, False), (None, False)])
def test_the_budget_on_the_row_counts_ahead_of_the_given_one(budget, failed):
    job = expired("nobody.here.knows.it", max_attempts=budget)

    [reaped] = reap()

    assert reaped.failed is failed
    assert reaped.max_attempts == (budget or 3)
    assert reaped.job_type == job.type


def test_the_given_budget_counts_for_a_row_without_one():
    expired()

    [reaped] = Job.objects.reap(THRESHOLD, 1)

    assert reaped.failed


def test_the_attempt_is_recorded_with_the_claim_it_had():
    job = expired()

    [reaped] = reap()

    attempt = JobAttempt.objects.get()
    assert (attempt.job_id, attempt.number, attempt.outcome) == (job.pk, 1, SettleOutcome.REAPED)
    assert (attempt.claim_token, attempt.worker) == (job.claim_token, "elsewhere:1:1")
    assert (attempt.started_at, attempt.executor) == (job.started_at, job.executor)
    assert attempt.exception_class == "django_jobqueue.exceptions.WorkerDied"
    assert attempt.message == reaped.error.message


def test_a_job_that_kills_every_worker_starts_as_often_as_it_may_and_then_fails():
    job = Job.objects.enqueue("test.poison")
    starts = 0
    while claims := Job.objects.claim(
        [uuid4()], {"test.poison": LEASE}, max_attempts={"test.poison": 3}
    ):
        starts += len(claims)
        Job.objects.running().update(lease_expires_at=now() - SECOND)
        reap()

    job.refresh_from_db()
    assert (starts, job.status, job.attempts) == (3, JobStatus.FAILED, 3)
    assert "died" in job.last_error
    numbers = JobAttempt.objects.order_by("id").values_list("number", "outcome")
    assert list(numbers) == [(n, SettleOutcome.REAPED) for n in (1, 2, 3)]


def test_a_reaped_claim_changes_nothing_any_more():
    job = expired()
    reap()

    assert Job.objects.renew([job.claim]) == set()
    assert succeed(job) == {job.claim_token: SettleOutcome.CLAIM_LOST}
    assert Job.objects.release([job.claim]) == set()
    assert Job.objects.get().status == JobStatus.PENDING


def test_only_running_jobs_are_looked_at():
    ended = [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.PENDING]
    saved(*(unsaved(status, age=timedelta(days=9)) for status in ended))

    assert reap() == []


def test_a_thousand_healthy_long_jobs_do_not_hide_one_expired():
    long_running = (unsaved(JobStatus.RUNNING, age=9 * HOUR) for _ in range(1000))
    saved(*long_running)
    job = expired()

    assert [reaped.job_id for reaped in reap(limit=1)] == [job.pk]
    assert Job.objects.running().count() == 1000


def test_the_longest_expired_comes_first_and_a_pass_is_bounded():
    late = [
        claimed(lease_expires_at=now() - timedelta(seconds=seconds)).pk for seconds in (1, 30, 10)
    ]

    assert {reaped.job_id for reaped in reap(limit=2)} == {late[1], late[2]}
    assert [reaped.job_id for reaped in reap(limit=2)] == [late[0]]


def test_a_lease_that_ran_out_after_the_given_time_holds():
    looked_at = now() - timedelta(seconds=20)
    claimed(lease_expires_at=looked_at + SECOND)
    dead = claimed(lease_expires_at=looked_at - SECOND)

    assert [reaped.job_id for reaped in reap(as_of=looked_at)] == [dead.pk]


def test_a_lease_renewed_long_after_the_given_time_is_not_too_far_out():
    looked_at = now() - timedelta(minutes=10)
    claimed()

    assert reap(as_of=looked_at) == []


def test_chosen_jobs_are_reset_only_when_they_show_a_signal():
    healthy, stuck, unchosen = claimed(), expired(), expired()

    assert [r.job_id for r in reap(jobs=[healthy, stuck.pk], limit=1)] == [stuck.pk]
    unchosen.refresh_from_db()
    assert unchosen.claim is not None
    assert reap(jobs=[]) == []


def test_stuck_names_the_signal_of_each_job():
    jobs = {claimed(**columns()).pk: signal for signal, columns in SHOWN.items()}
    claimed()

    assert dict(Job.objects.stuck(THRESHOLD).values_list("pk", "signal")) == jobs


@on_postgresql
def test_a_worker_whose_clock_is_ten_minutes_off_reaps_alike(monkeypatch):
    healthy, dead = claimed(), expired()
    real_now = timezone.now

    for minutes in (10, -10):
        off = timedelta(minutes=minutes)
        monkeypatch.setattr("django.utils.timezone.now", lambda off=off: real_now() + off)
        monkeypatch.setattr("time.time", lambda off=off: (real_now() + off).timestamp())

        assert {r.job_id for r in reap()} == ({dead.pk} if minutes == 10 else set())

    healthy.refresh_from_db()
    assert healthy.claim is not None


def test_job_settled_is_sent_for_those_that_failed():
    events = []

    def note(sender, event, **kwargs):
        events.append((sender, event))

    job = expired(max_attempts=1, org_id="acme")
    expired()
    job_settled.connect(note)
    try:
        send_reaped(Job, reap())
    finally:
        job_settled.disconnect(note)

    [(sender, event)] = events
    job.refresh_from_db()
    assert sender is Job
    assert (event.job_id, event.status, event.attempts) == (job.pk, JobStatus.FAILED, 1)
    assert (event.org_id, event.last_error) == ("acme", job.last_error)


@on_postgresql
def test_a_pass_is_one_statement(django_assert_num_queries):
    for _ in range(5):
        expired()

    with django_assert_num_queries(3):  # The savepoint in which the ORM compiles, and the one.
        assert len(reap()) == 5


@on_postgresql
@real_transactions
def test_a_job_that_settles_between_the_look_and_the_write_stays_settled():
    job = expired()
    barrier = Func(Value(3), function="pg_advisory_xact_lock_shared", output_field=CharField())
    jobs = Job.objects.annotate(passed=Cast(barrier, CharField())).filter(passed="")
    request = ReapRequest(THRESHOLD, 1, None, 10)

    with another_connection() as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(3)")
        reaper = Aside(lambda: Job.objects._database().reap(jobs, request))
        backend_that_waits()
        assert succeed(job) == {job.claim_token: SettleOutcome.SUCCEEDED}
        cursor.execute("SELECT pg_advisory_unlock(3)")

    assert reaper.answer() == []
    job.refresh_from_db()
    assert (job.status, job.result) == (JobStatus.SUCCEEDED, {"done": True})
    assert not JobAttempt.objects.exists()


@on_postgresql
@real_transactions
def test_a_locked_row_is_left_alone_and_stalls_nobody():
    locked, free = expired(), expired()

    with transaction.atomic():
        Job.objects.select_for_update().get(pk=locked.pk)
        assert [r.job_id for r in Aside(reap).answer()] == [free.pk]
        succeed(locked)

    assert reap() == []
    assert Job.objects.get(pk=locked.pk).status == JobStatus.SUCCEEDED


@real_transactions
def test_of_many_reapers_at_once_one_ends_each_claim():
    jobs = {expired().pk for _ in range(40)}

    reapers = [Aside(lambda: [r for _ in range(10) for r in reap(limit=5)]) for _ in range(4)]
    ended = [reaped.job_id for reaper in reapers for reaped in reaper.answer()]
    ended += [reaped.job_id for reaped in reap()]

    assert sorted(ended) == sorted(jobs)
    assert JobAttempt.objects.count() == len(jobs)
    assert Job.objects.pending().filter(attempts=1).count() == len(jobs)


@real_transactions
def test_a_renewal_that_comes_first_keeps_the_claim():
    job = expired()

    Job.objects.renew([job.claim])

    assert reap() == []
