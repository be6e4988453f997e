from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import Job
from django_jobqueue.states import Claim
from tests.claims import claim_of, claimed, locked, retry, row, rows, success, tokens
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(days=1)


def expired(**options):
    """A running job whose lease is over."""
    return JobFactory(running=True, lease_expires_at=timezone.now() - LONG_AGO, **options)


def claimed_again(jobs):
    """Two claims of one job, both by this process: the one it lost, and the one it has."""
    JobFactory()
    (stale,) = claimed(jobs=jobs)
    jobs.release([claim_of(stale)])
    (live,) = claimed(jobs=jobs)
    return claim_of(stale), claim_of(live)


def test_a_renewal_extends_each_lease_by_what_its_claim_was_granted(jobs):
    short, long = expired(lease_seconds=30), expired(lease_seconds=600)
    before = timezone.now()

    held = jobs.renew([claim_of(short), claim_of(long)])

    assert held == {short.claim_token, long.claim_token}
    margin = timedelta(seconds=20)
    for job, lease in ((short, timedelta(seconds=30)), (long, timedelta(seconds=600))):
        assert before - margin < row(job)["lease_expires_at"] - lease < before + margin


def test_a_renewal_changes_nothing_but_the_lease(jobs):
    job = expired()
    before = row(job)

    jobs.renew([claim_of(job)])

    changed = {name for name, value in row(job).items() if value != before[name]}
    assert changed == {"lease_expires_at"}


def test_a_claim_without_a_granted_lease_is_held_and_stays_without(jobs):
    job = JobFactory(running=True, lease_seconds=None, lease_expires_at=None)

    assert jobs.renew([claim_of(job)]) == {job.claim_token}
    assert row(job)["lease_expires_at"] is None


def test_no_claims_are_renewed_without_a_query(jobs, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert jobs.renew([]) == set()


def test_a_renewal_with_a_foreign_token_changes_nothing(jobs):
    job = expired()
    before = rows()

    assert jobs.renew([Claim(job.pk, tokens()[0])]) == set()
    assert rows() == before


def test_a_renewal_of_an_earlier_claim_changes_nothing(jobs):
    stale, _ = claimed_again(jobs)
    before = rows()

    assert jobs.renew([stale]) == set()
    assert rows() == before


@pytest.mark.parametrize("ending", [success, retry])
def test_a_renewal_after_the_settle_changes_nothing(jobs, ending):
    JobFactory()
    (job,) = claimed(jobs=jobs)
    jobs.settle([ending(job)])
    before = rows()

    assert jobs.renew([claim_of(job)]) == set()
    assert rows() == before


def test_a_renewal_of_a_deleted_job_says_that_it_is_lost(jobs):
    job = expired()
    claim = claim_of(job)
    Job.objects.filter(pk=job.pk).delete()

    assert jobs.renew([claim]) == set()


def test_a_lost_claim_does_not_keep_others_from_being_renewed(jobs):
    job = expired()
    lost = Claim(JobFactory().pk, tokens()[0])

    assert jobs.renew([lost, claim_of(job)]) == {job.claim_token}
    assert row(job)["lease_expires_at"] > timezone.now()


@pytest.mark.parametrize("order", [1, -1], ids=["stale first", "stale last"])
def test_a_stale_claim_beside_the_live_one_of_the_same_job_does_no_harm(jobs, order):
    stale, live = claimed_again(jobs)
    Job.objects.update(lease_expires_at=timezone.now() - LONG_AGO)

    assert jobs.renew([stale, live][::order]) == {live.token}
    assert Job.objects.get().lease_expires_at > timezone.now()


@on_postgresql
@committed
def test_a_locked_row_counts_as_held_and_delays_no_other(jobs):
    first, second, third = (expired() for _ in range(3))
    before = row(second)

    with locked(second):
        held = jobs.renew([claim_of(job) for job in (first, second, third)])

    assert held == {first.claim_token, second.claim_token, third.claim_token}
    assert row(second) == before
    assert row(first)["lease_expires_at"] > timezone.now()
    assert row(third)["lease_expires_at"] > timezone.now()


@on_postgresql
@committed
def test_a_renewal_of_all_claims_is_one_statement(django_assert_num_queries):
    claims = [claim_of(expired()) for _ in range(5)]

    with django_assert_num_queries(1):
        assert len(Job.objects.renew(claims)) == 5


def test_a_token_is_not_held_for_another_job(jobs):
    first, second = JobFactory.create_batch(2, running=True)

    assert jobs.renew([Claim(first.pk, second.claim_token)]) == set()
