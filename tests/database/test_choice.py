import pytest
from django.db import connection

from django_jobqueue.database import ClaimRequest, Tables, queue_database
from django_jobqueue.database.portable import Portable
from django_jobqueue.database.postgresql import PostgreSQL
from django_jobqueue.managers import tables_of
from django_jobqueue.models import Job, JobAttempt, JobStatsRollup, QueueControl
from tests.claims import LEASES, tokens


def test_the_models_of_a_job_belong_together():
    assert tables_of(Job) == Tables(Job, JobAttempt, QueueControl, JobStatsRollup)


def test_every_database_but_postgresql_is_spoken_to_portably():
    expected = PostgreSQL if connection.vendor == "postgresql" else Portable

    assert isinstance(queue_database(tables_of(Job), "default"), expected)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (ClaimRequest(tokens(), LEASES, "server"), True),
        (ClaimRequest(tokens(), LEASES, "server", queues=["mail"]), True),
        (ClaimRequest([], LEASES, "server"), False),
        (ClaimRequest(tokens(), {}, "server"), False),
        (ClaimRequest(tokens(), LEASES, "server", queues=[]), False),
    ],
)
def test_a_request_that_can_find_nothing_is_false(asked, wanted):
    assert bool(asked) is wanted
