import uuid
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, RetryResult
from tests.claims import claimed, row
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_an_ended_job_waits_again_with_its_counters_reset(state):
    job = JobFactory(
        **{state: True},
        attempts=3,
        rate_limit_hits=2,
        rate_limited_at=timezone.now(),
        ready_at=timezone.now() - timedelta(days=1),
        started_at=timezone.now(),
    )

    assert Job.objects.retry(job) == {job.pk: RetryResult.RETRIED}

    stored = row(job)
    assert stored["status"] == JobStatus.PENDING
    assert (stored["attempts"], stored["rate_limit_hits"]) == (0, 0)
    for name in ("rate_limited_at", "scheduled_for", "started_at", "finished_at", "result"):
        assert stored[name] is None, name
    assert stored["ready_at"] > timezone.now() - timedelta(minutes=1)
    assert claimed() == [job]


@pytest.mark.parametrize("state", [{}, {"scheduled": True}, {"running": True}, {"succeeded": True}])
def test_a_job_that_has_not_failed_is_refused(state):
    job = JobFactory(**state)
    before = row(job)

    assert Job.objects.retry(job) == {job.pk: RetryResult.REFUSED}
    assert row(job) == before


def test_an_unknown_id_is_refused():
    unknown = uuid.uuid4()

    assert Job.objects.retry(unknown) == {unknown: RetryResult.REFUSED}


def test_a_job_whose_key_is_taken_is_reported_as_a_duplicate():
    active = JobFactory(dedup_key="once")
    ended = JobFactory(dedup_key="once", failed=True)
    before = row(ended)

    assert Job.objects.retry(ended) == {ended.pk: RetryResult.DUPLICATE}
    assert row(ended) == before
    assert row(active)["status"] == JobStatus.PENDING


def test_of_two_jobs_with_one_key_the_first_wins_and_the_rest_goes_on():
    first, second = JobFactory.create_batch(2, dedup_key="once", failed=True)
    third = JobFactory(cancelled=True)

    answers = Job.objects.retry([second, first.pk, third])

    assert list(answers.items()) == [
        (second.pk, RetryResult.RETRIED),
        (first.pk, RetryResult.DUPLICATE),
        (third.pk, RetryResult.RETRIED),
    ]


def test_the_caller_s_transaction_stays_usable_after_a_duplicate():
    JobFactory(dedup_key="once")
    ended = JobFactory(dedup_key="once", failed=True)

    with transaction.atomic():
        Job.objects.retry(ended)
        JobFactory()

    assert Job.objects.count() == 3


def test_nothing_is_retried_without_a_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert Job.objects.retry([]) == {}
