import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobqueue.models import Job
from django_jobqueue.states import SettleOutcome
from tests.claims import LEASES, claim_of, claimed, failure, row, rows, success, tokens
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db


def test_one_call_settles_and_claims_the_next(jobs):
    first, second = JobFactory.create_batch(2)
    (held,) = claimed(jobs=jobs)
    (token,) = tokens()

    outcomes, claims = jobs.settle_and_claim(
        [success(held, {"n": 1})],
        [token],
        LEASES,
        workers={token: "host:1:0"},
        max_attempts={"test.echo": 4},
    )

    assert outcomes == {held.claim_token: SettleOutcome.SUCCEEDED}
    assert claims == [second]
    assert {name: getattr(claims[0], name) for name in row(second)} == row(second)
    assert (claims[0].claim_token, claims[0].worker, claims[0].max_attempts) == (
        token,
        "host:1:0",
        4,
    )
    assert row(first)["result"] == {"n": 1}


def test_claims_come_in_order_beside_settles(jobs):
    JobFactory.create_batch(2)
    held = claimed(2, jobs=jobs)
    late, urgent = JobFactory(priority=5), JobFactory(priority=-5)

    outcomes, claims = jobs.settle_and_claim(
        [failure(job) for job in held], tokens(4), LEASES, queues=["default"]
    )

    assert len(outcomes) == 2
    assert claims == [urgent, late]


def test_a_settle_without_a_wish_claims_nothing(jobs):
    JobFactory.create_batch(2)
    (held,) = claimed(jobs=jobs)

    outcomes, claims = jobs.settle_and_claim([success(held)], [], LEASES)

    assert outcomes == {held.claim_token: SettleOutcome.SUCCEEDED}
    assert claims == []


def test_a_wish_without_a_settle_claims(jobs):
    job = JobFactory()

    assert jobs.settle_and_claim([], tokens(), LEASES) == ({}, [job])


def test_neither_is_no_query(jobs, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert jobs.settle_and_claim([], tokens(), {}) == ({}, [])


def test_a_lost_claim_keeps_nobody_from_claiming(jobs):
    JobFactory()
    (stale,) = claimed(jobs=jobs)
    jobs.release([claim_of(stale)])

    outcomes, claims = jobs.settle_and_claim([success(stale)], tokens(), LEASES)

    assert outcomes == {stale.claim_token: SettleOutcome.CLAIM_LOST}
    assert claims == [stale]


def test_settling_again_answers_as_the_first_time_and_claims(jobs):
    first, _, third = JobFactory.create_batch(3)
    (held,) = claimed(jobs=jobs)
    jobs.settle_and_claim([success(held)], tokens(), LEASES)
    before = rows()[0][0]

    outcomes, claims = jobs.settle_and_claim([success(held)], tokens(), LEASES)

    assert outcomes == {held.claim_token: SettleOutcome.SUCCEEDED}
    assert claims == [third]
    assert row(first) == before


@on_postgresql
@committed
def test_settling_and_claiming_is_one_statement():
    JobFactory.create_batch(2)
    (held,) = claimed()

    with CaptureQueriesContext(connection) as queries:
        outcomes, claims = Job.objects.settle_and_claim([success(held)], tokens(), LEASES)

    assert (len(outcomes), len(claims)) == (1, 1)
    (query,) = queries
    assert "FOR NO KEY UPDATE SKIP LOCKED" in query["sql"]
