"""One row that Python cannot read, written by SQL, must not take the jobs beside it along."""

import pytest
from django.db import connection

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from tests.marks import on_postgresql
from tests.processes import eventually

pytestmark = [on_postgresql, pytest.mark.usefixtures("transactional_db")]

UNREADABLE = {
    "time": "ready_at = 'infinity'",
    "number": "payload = jsonb_build_object('n', repeat('9', 5000)::numeric)",
}


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
