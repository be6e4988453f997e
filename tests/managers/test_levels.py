"""A look reports one job a lane: what it hides at the lane's other levels stays hidden."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from django_jobqueue.hints import Hints
from django_jobqueue.models import Job
from tests.marks import on_postgresql

pytestmark = [on_postgresql, pytest.mark.django_db]

LEASES = {"test.echo": timedelta(minutes=5)}
ROUNDS = 20


def test_a_late_job_is_found_though_each_look_sees_a_more_urgent_one_of_its_lane():
    hints = Hints()
    for _ in range(ROUNDS * 8 + 200):
        Job.objects.enqueue("test.echo", priority=5)
    Job.objects.claim([uuid4() for _ in range(8)], LEASES, hints=hints)
    late = Job.objects.enqueue("test.echo", priority=5)
    moved = UUID(int=late.pk.int - (3_600_000 << 80))  # Its producer is an hour behind.
    Job.objects.filter(pk=late.pk).update(id=moved)

    claimed = set()
    for _ in range(ROUNDS):
        Job.objects.enqueue("test.echo", priority=0)
        Job.objects.look(["test.echo"], hints=hints)
        jobs = Job.objects.claim([uuid4() for _ in range(8)], LEASES, hints=hints)
        claimed |= {job.pk for job in jobs}

    assert moved in claimed
