"""One row that Python cannot read, written by SQL, must not take the jobs beside it along."""

import json

import pytest
from django.db import connection

from django_jobqueue import JobRequest
from django_jobqueue.hints import Hints
from django_jobqueue.models import Job
from tests.claims import LEASES, tokens
from tests.marks import on_postgresql
from tests.processes import eventually

pytestmark = [on_postgresql, pytest.mark.usefixtures("transactional_db")]

UNREADABLE = {
    "time": "ready_at = 'infinity'",
    "number": "payload = jsonb_build_object('n', repeat('9', 5000)::numeric)",
}

# As deep as PostgreSQL takes it; newer Pythons read that.
LEVELS = 5900
try:
    json.loads("[" * LEVELS + "]" * LEVELS)
except RecursionError:
    NESTED = f"(repeat('[', {LEVELS}) || repeat(']', {LEVELS}))::jsonb"
    UNREADABLE["depth"] = f"payload = jsonb_build_object('n', {NESTED})"


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_the_others_are_done(pools, change):
    spoilt = Job.objects.enqueue("test.echo", priority=1)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobqueue_job SET {change} WHERE id = %s", [spoilt.pk])
    others = [
        job.pk
        for priority in (0, 2)
        for job in Job.objects.enqueue_many([JobRequest("test.echo", priority=priority)] * 10)
    ]

    pools(4).start()

    done = Job.objects.terminal().filter(pk__in=others)
    eventually(lambda: done.count() == len(others), "others wait", 10)


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_every_row_gets_another_token(change):
    """The first ten are behind a window of foreign jobs, so that a claim takes several looks."""
    Job.objects.enqueue_many([JobRequest("test.foreign", priority=-1)] * 300)
    spoilt = Job.objects.enqueue("test.echo", priority=1)
    Job.objects.enqueue_many(
        [JobRequest("test.echo", priority=p) for p in (0, 2) for _ in range(9)]
    )
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobqueue_job SET {change} WHERE id = %s", [spoilt.pk])
    asked = tokens(40)

    found = Job.objects.claim(asked, LEASES, hints=Hints())

    carried = list(Job.objects.running().values_list("claim_token", flat=True))
    assert len(found) == 18
    assert len(carried) == len(set(carried)) == 19


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_the_next_look_comes_soon(change):
    spoilt = Job.objects.enqueue("test.echo")
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobqueue_job SET {change} WHERE id = %s", [spoilt.pk])
    hints = Hints()

    assert Job.objects.claim(tokens(1), LEASES, hints=hints) == []
    assert hints.look_is_due
