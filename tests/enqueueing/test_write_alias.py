"""A site with a replica: the queue reads and writes where it writes."""

import pytest
from django.db import connections
from django.test import override_settings

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from tests.aliases import alias
from tests.claims import LEASES, claim_of, claimed, failure, success, tokens
from tests.marks import committed

pytestmark = committed


class Router:
    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "queue"


@pytest.fixture
def replica():
    """An alias that must not be asked, beside the one that holds the queue."""
    with alias("queue"), alias("replica"):
        connections["queue"].connect()
        with override_settings(DATABASE_ROUTERS=[f"{__name__}.Router"]):
            yield


def untouched(name):
    return connections[name].connection is None


def test_every_transition_goes_to_the_write_alias(replica, jobs):
    first = jobs.enqueue("test.echo", subject=("report", 7))
    assert jobs.enqueue("test.echo", subject=("report", 7)) == first
    jobs.enqueue_many([JobRequest("test.echo"), JobRequest("test.echo", dedup_key="once")] * 2)

    one, two, three = claimed(3, jobs=jobs)
    assert {job._state.db for job in (first, one, two, three)} == {"queue"}
    assert len(jobs.renew([claim_of(job) for job in (one, two, three)])) == 3
    assert len(jobs.settle([success(one), failure(two)])) == 2
    assert len(jobs.settle([success(one), failure(two)])) == 2
    assert jobs.release([claim_of(three)]) == {three.claim_token}
    assert jobs.renew([claim_of(three)]) == set()
    _, (four,) = jobs.settle_and_claim([failure(three)], tokens(), LEASES)
    assert jobs.promote() == 0
    assert jobs.seconds_until_due() is None
    assert jobs.cancel(four) == set()
    assert len(jobs.retry([two])) == 1
    assert jobs.pause("queue", "default")
    assert jobs.resume("queue", "default")

    assert untouched("replica")


def test_an_alias_named_by_the_caller_comes_before_the_router(replica):
    connections["queue"].close()  # It cannot be used any more.
    job = Job.objects.db_manager("default").enqueue("test.echo")

    assert Job.objects.using("default").get() == job
    assert job._state.db == "default"
