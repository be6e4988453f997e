"""A site whose server runs every statement as SERIALIZABLE loses no job."""

import pytest
from django.db import OperationalError, connections, transaction

from django_jobqueue.database.errors import is_conflict
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.aliases import alias
from tests.claims import TRIES, claimed, settled, success
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql
from tests.threads import together

pytestmark = [committed, on_postgresql]
SERIALIZABLE = {"options": "-c default_transaction_isolation=serializable"}


@pytest.fixture
def strict():
    with alias("strict", OPTIONS=SERIALIZABLE) as name:
        yield name


@pytest.fixture
def strict_jobs(strict, jobs):
    return jobs.db_manager(strict)


def again(operation):
    """Do what the worker does about a conflict that outlasted the manager's own tries."""
    for _ in range(TRIES):
        try:
            return operation()
        except OperationalError as error:
            if not is_conflict(error):
                raise
    raise AssertionError("conflicts without end")


def test_four_claimers_lose_no_job(strict, strict_jobs):
    JobFactory.create_batch(120)

    def settle(found):
        return settled([success(job) for job in found], jobs=strict_jobs)

    def work():
        connections[strict].connect()
        mine = []
        while found := again(lambda: claimed(3, jobs=strict_jobs)):
            mine += [job.pk for job in found]
            again(lambda found=found: settle(found))
        return mine

    shares = together(*[work] * 4)

    found = [pk for share in shares for pk in share]
    assert len(found) == len(set(found)) == 120
    assert Job.objects.filter(status=JobStatus.SUCCEEDED, attempts=1).count() == 120


def test_a_conflict_inside_the_caller_s_transaction_is_not_tried_again(strict):
    connections[strict].connect()
    job = JobFactory()

    with transaction.atomic(using=strict):
        assert Job.objects.using(strict).count() == 1
        Job.objects.filter(pk=job.pk).update(reason="theirs")
        with pytest.raises(OperationalError):
            claimed(jobs=Job.objects.db_manager(strict))

    assert Job.objects.get().status == JobStatus.PENDING
