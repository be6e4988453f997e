"""An idle pool that would not look for a minute starts what arrives at once."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import connections

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests import databases
from tests.marks import on_postgresql
from tests.processes import eventually

ENOUGH = timedelta(seconds=2)

ENQUEUE = """
import sys, django
django.setup()
from django_jobqueue.models import Job
for line in sys.stdin:
    print(Job.objects.enqueue("test.echo", delay=float(line) or None).pk, flush=True)
"""


@pytest.fixture(autouse=True)
def _lazy(jobqueue):
    jobqueue(POLL_INTERVAL=60)


@pytest.fixture
def elsewhere():
    """Enqueue from another process; returns the row."""
    environ = os.environ | {
        "DATABASE_URL": databases.url_of(connections["default"].settings_dict),
        "TEST_DATABASE": databases.chosen_kind(os.environ),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    with subprocess.Popen(
        [sys.executable, "-c", ENQUEUE],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def enqueue(delay=0):
            process.stdin.write(f"{delay}\n")
            process.stdin.flush()
            return Job.objects.get(pk=process.stdout.readline().strip())

        yield enqueue
        process.stdin.close()


def started(job):
    """Wait until the job has run; return how long it waited after it was due."""
    due_at = job.ready_at
    eventually(
        lambda: Job.objects.filter(pk=job.pk, status=JobStatus.SUCCEEDED).exists(),
        "the idle pool was not woken",
    )
    job.refresh_from_db()
    return job.started_at - due_at


def test_by_an_enqueue_of_its_own_process(pools):
    pools(2).start()

    for _ in range(20):
        assert started(Job.objects.enqueue("test.echo")) < ENOUGH


def test_by_a_scheduled_job_of_its_own_process(pools):
    pools(2).start()

    for delay in (0.05, 0.2):
        assert started(Job.objects.enqueue("test.echo", delay=delay)) < ENOUGH


@on_postgresql
def test_by_an_enqueue_of_another_process(pools, elsewhere):
    pools(2).start()

    for _ in range(20):
        assert started(elsewhere()) < ENOUGH


@on_postgresql
def test_by_a_scheduled_job_of_another_process(pools, elsewhere):
    pools(2).start()

    for delay in (0.05, 0.2):
        assert started(elsewhere(delay)) < ENOUGH
