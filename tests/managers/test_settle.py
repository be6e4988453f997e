from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import (
    Attempt,
    Changes,
    Claim,
    Decision,
    ErrorReport,
    Executor,
    JobStatus,
    SettleOutcome,
)
from tests.claims import (
    ERROR,
    attempt_of,
    claim_of,
    claimed,
    failure,
    locked,
    retry,
    row,
    rows,
    success,
    tokens,
)
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db
MARGIN = timedelta(seconds=30)
ENDINGS = [success, failure, retry]


@pytest.fixture
def job(jobs):
    """A claimed job."""
    JobFactory()
    (token,) = tokens()
    (job,) = jobs.claim([token], {"test.echo": timedelta(seconds=90)}, workers={token: "host:1:0"})
    return job


def test_success_stores_the_result_and_ends_the_claim(jobs, job):
    assert jobs.settle([success(job, {"n": [1, 2.5, None, "ü"]})]) == {
        job.claim_token: SettleOutcome.SUCCEEDED
    }

    stored = row(job)
    assert stored["status"] == JobStatus.SUCCEEDED
    assert stored["result"] == {"n": [1, 2.5, None, "ü"]}
    assert stored["finished_at"] >= stored["started_at"]
    assert (stored["claim_token"], stored["lease_expires_at"]) == (None, None)
    assert (stored["attempts"], stored["executor"], stored["worker"]) == (
        1,
        Executor.SERVER,
        "host:1:0",
    )


def test_success_adds_no_attempt_row(jobs, job):
    jobs.settle([success(job)])

    assert not JobAttempt.objects.exists()


def test_success_without_a_result_stores_null(jobs, job):
    jobs.settle([success(job)])

    assert Job.objects.filter(result__isnull=True).exists()


def test_success_keeps_the_error_of_an_earlier_attempt(jobs, job):
    jobs.settle([retry(job, delay=None)])
    (again,) = claimed(jobs=jobs)

    jobs.settle([success(again)])

    stored = row(job)
    assert (stored["status"], stored["last_error"]) == ("succeeded", "ValueError: as asked")


def test_failure_keeps_the_error_and_writes_the_attempt(jobs, job):
    assert jobs.settle([failure(job)]) == {job.claim_token: SettleOutcome.FAILED}

    stored = row(job)
    assert (stored["status"], stored["last_error"]) == ("failed", "ValueError: as asked")
    assert stored["finished_at"] is not None
    attempt = JobAttempt.objects.get()
    assert attempt.job_id == job.pk
    assert attempt.number == 1
    assert attempt.outcome == SettleOutcome.FAILED
    assert attempt.started_at == job.started_at
    assert attempt.finished_at == stored["finished_at"]
    assert attempt.executor == Executor.SERVER
    assert attempt.worker == "host:1:0"
    assert attempt.claim_token == job.claim_token
    assert attempt.exception_class == "builtins.ValueError"
    assert attempt.message == "as asked"
    assert attempt.traceback == "Traceback ..."


def test_a_failure_without_a_report_writes_an_empty_attempt(jobs, job):
    decision = Decision(
        claim_of(job), SettleOutcome.FAILED, Changes(JobStatus.FAILED), attempt_of(job)
    )

    jobs.settle([decision])

    attempt = JobAttempt.objects.get()
    assert (attempt.exception_class, attempt.message, attempt.traceback) == ("", "", "")
    assert row(job)["last_error"] == ""


def test_a_retry_is_due_after_its_delay_by_the_database_s_clock(jobs, job):
    assert jobs.settle([retry(job, timedelta(minutes=5))]) == {
        job.claim_token: SettleOutcome.RETRY_SCHEDULED
    }

    stored = row(job)
    assert stored["status"] == JobStatus.PENDING
    assert stored["scheduled_for"] == stored["ready_at"]
    assert abs(stored["ready_at"] - timezone.now() - timedelta(minutes=5)) < MARGIN
    assert (stored["finished_at"], stored["claim_token"]) == (None, None)
    assert stored["attempts"] == 1
    assert JobAttempt.objects.get().outcome == SettleOutcome.RETRY_SCHEDULED


def test_a_retry_without_delay_is_ready_at_once(jobs, job):
    jobs.settle([retry(job, delay=None)])

    stored = row(job)
    assert stored["scheduled_for"] is None
    assert abs(stored["ready_at"] - timezone.now()) < MARGIN
    assert claimed(jobs=jobs) == [job]


def test_a_deferral_writes_its_counters_as_absolute_values(jobs, job):
    changes = Changes(
        JobStatus.PENDING,
        delay=timedelta(seconds=30),
        attempts=0,
        rate_limit_hits=3,
        rate_limited=True,
    )
    decision = Decision(claim_of(job), SettleOutcome.RATE_LIMIT_DEFERRED, changes, attempt_of(job))

    assert jobs.settle([decision]) == {job.claim_token: SettleOutcome.RATE_LIMIT_DEFERRED}
    assert jobs.settle([decision]) == {job.claim_token: SettleOutcome.RATE_LIMIT_DEFERRED}

    stored = row(job)
    assert (stored["attempts"], stored["rate_limit_hits"]) == (0, 3)
    assert abs(stored["rate_limited_at"] - timezone.now()) < MARGIN


@pytest.mark.parametrize("ending", ENDINGS)
def test_settling_again_answers_as_the_first_time_and_writes_nothing(jobs, job, ending):
    first = jobs.settle([ending(job)])
    before = rows()

    assert jobs.settle([ending(job)]) == first
    assert rows() == before


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_settle_twice_in_one_call_is_written_once(jobs, job, ending):
    outcomes = jobs.settle([ending(job), ending(job)])

    assert outcomes == {job.claim_token: ending(job).outcome}
    assert JobAttempt.objects.count() == (0 if ending is success else 1)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("first", ENDINGS)
def test_a_settle_after_another_ending_of_the_same_claim_is_refused(jobs, job, first, ending):
    jobs.settle([first(job)])
    before = rows()

    answer = jobs.settle([ending(job)])[job.claim_token]

    assert answer == (ending(job).outcome if first is ending else SettleOutcome.CLAIM_LOST)
    assert rows() == before


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_settle_with_a_foreign_token_changes_nothing(jobs, job, ending):
    decision = ending(job)
    (token,) = tokens()
    foreign = Decision(Claim(job.pk, token), decision.outcome, decision.changes, decision.attempt)
    before = rows()

    assert jobs.settle([foreign]) == {token: SettleOutcome.CLAIM_LOST}
    assert rows() == before


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_settle_of_an_earlier_claim_leaves_the_later_one_alone(jobs, job, ending):
    jobs.release([claim_of(job)])
    (later,) = claimed(jobs=jobs)
    before = rows()

    assert jobs.settle([ending(job)]) == {job.claim_token: SettleOutcome.CLAIM_LOST}
    assert rows() == before
    assert jobs.settle([success(later)]) == {later.claim_token: SettleOutcome.SUCCEEDED}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_stale_settle_after_the_success_of_a_later_claim_is_lost(jobs, job, ending):
    jobs.release([claim_of(job)])
    (later,) = claimed(jobs=jobs)
    jobs.settle([success(later, "theirs")])
    before = rows()

    assert jobs.settle([ending(job)]) == {job.claim_token: SettleOutcome.CLAIM_LOST}
    assert rows() == before


@pytest.mark.parametrize("order", [1, -1], ids=["stale first", "stale last"])
def test_a_process_settles_a_lost_and_a_live_claim_of_one_job_in_one_call(jobs, job, order):
    jobs.release([claim_of(job)])
    (live,) = claimed(jobs=jobs)

    outcomes = jobs.settle([failure(job), success(live, "mine")][::order])

    assert outcomes == {
        job.claim_token: SettleOutcome.CLAIM_LOST,
        live.claim_token: SettleOutcome.SUCCEEDED,
    }
    assert row(job)["result"] == "mine"


def test_a_settle_of_a_deleted_job_is_lost(jobs, job):
    Job.objects.filter(pk=job.pk).delete()

    assert jobs.settle([success(job)]) == {job.claim_token: SettleOutcome.CLAIM_LOST}


def test_decisions_of_one_call_are_settled_each_by_itself(jobs):
    JobFactory.create_batch(3)
    first, second, third = claimed(3, jobs=jobs)

    outcomes = jobs.settle([success(third), failure(first), retry(second)])

    assert outcomes == {
        first.claim_token: SettleOutcome.FAILED,
        second.claim_token: SettleOutcome.RETRY_SCHEDULED,
        third.claim_token: SettleOutcome.SUCCEEDED,
    }


def test_nothing_is_settled_without_a_query(jobs, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert jobs.settle([]) == {}


def test_the_longest_error_fits(jobs, job):
    report = ErrorReport("e" * 200, "ü" * 5_000, "t" * 50_000)

    jobs.settle([failure(job, report)])

    assert len(row(job)["last_error"]) == 2_000
    assert JobAttempt.objects.get().message == "ü" * 5_000


def test_a_settle_names_the_attempt_as_its_executor_counted_it(jobs, job):
    decision = failure(job)
    counted = Attempt(9, decision.attempt.worker, decision.attempt.started_at, ERROR)

    jobs.settle([Decision(decision.claim, decision.outcome, decision.changes, counted)])

    assert JobAttempt.objects.get().number == 9


@on_postgresql
@committed
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_locked_row_gets_no_answer_and_delays_no_other(jobs, ending):
    JobFactory.create_batch(3)
    first, second, third = held = claimed(3, jobs=jobs)
    before = row(second)

    with locked(second):
        outcomes = jobs.settle([ending(job) for job in held])
        assert row(second) == before

    outcome = ending(first).outcome
    assert outcomes == {first.claim_token: outcome, third.claim_token: outcome}
    assert jobs.settle([ending(second)]) == {second.claim_token: outcome}


@on_postgresql
@committed
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_settle_is_one_statement(ending, django_assert_num_queries):
    JobFactory.create_batch(3)
    held = claimed(3)

    with django_assert_num_queries(1):
        assert len(Job.objects.settle([ending(job) for job in held])) == 3
