from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import Job
from tests.claims import locked, row
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db


def test_due_jobs_become_ready_and_are_counted(jobs):
    JobFactory.create_batch(3, due=True)
    JobFactory(scheduled=True)

    assert jobs.promote() == 3
    assert jobs.promote() == 0
    assert (Job.objects.ready().count(), Job.objects.scheduled().count()) == (3, 1)


def test_a_promotion_changes_nothing_but_the_schedule(jobs):
    job = JobFactory(due=True)
    before = row(job)

    jobs.promote()

    assert row(job) == before | {"scheduled_for": None}
    assert row(job)["ready_at"] == job.scheduled_for


def test_the_longest_due_are_promoted_first_up_to_the_limit(jobs):
    now = timezone.now()
    young, old = (JobFactory(scheduled_for=now - timedelta(minutes=minutes)) for minutes in (1, 60))

    assert jobs.promote(limit=1) == 1
    assert list(Job.objects.ready()) == [old]
    assert list(Job.objects.scheduled()) == [young]


@pytest.mark.parametrize("state", ["cancelled", "succeeded", "failed"])
def test_an_ended_job_is_not_promoted(jobs, state):
    job = JobFactory(**{state: True}, scheduled_for=timezone.now() - timedelta(minutes=1))
    before = row(job)

    assert jobs.promote() == 0
    assert row(job) == before


@on_postgresql
@committed
def test_a_locked_row_is_skipped_and_delays_no_other(jobs):
    first, second = JobFactory.create_batch(2, due=True)

    with locked(first):
        assert jobs.promote() == 1

    assert list(Job.objects.ready()) == [second]


@on_postgresql
@committed
def test_a_promotion_is_one_statement(django_assert_num_queries):
    JobFactory.create_batch(3, due=True)

    with django_assert_num_queries(1):
        assert Job.objects.promote() == 3


def test_the_next_due_time_is_told_in_seconds():
    JobFactory(scheduled_for=timezone.now() + timedelta(hours=2))
    JobFactory(scheduled_for=timezone.now() + timedelta(hours=1))

    assert 3500 < Job.objects.seconds_until_due() <= 3600


def test_a_due_job_is_due_in_zero_seconds_or_less():
    JobFactory(due=True)

    assert Job.objects.seconds_until_due() <= 0


def test_without_a_scheduled_job_there_is_no_next_due_time():
    JobFactory()
    JobFactory(cancelled=True)

    assert Job.objects.seconds_until_due() is None


def test_only_the_chosen_jobs_are_promoted(jobs):
    first, second, third = JobFactory.create_batch(3, due=True)
    late = JobFactory(scheduled=True)

    assert jobs.promote(jobs=[third, late.pk]) == 1
    assert list(Job.objects.ready()) == [third]
    assert jobs.promote(jobs=first) == 1
    assert jobs.promote(jobs=[]) == 0
    assert set(Job.objects.scheduled()) == {second, late}
