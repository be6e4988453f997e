"""Jobs in the state a test needs, and connections of its own for its threads."""

import threading
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from django.db import connection, connections

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus

LEASE = timedelta(seconds=90)
THRESHOLD = timedelta(minutes=30)
HOUR = timedelta(hours=1)


def now():
    return Job.objects.now()


def claimed(job_type="test.none", **columns):
    """Return a job that is running, with columns set as if time had passed."""
    job = Job.objects.enqueue(job_type)
    [job] = Job.objects.claim(
        [token := uuid4()], {job_type: LEASE}, workers={token: "elsewhere:1:1"}
    )
    if columns:
        Job.objects.filter(pk=job.pk).update(**columns)
        job.refresh_from_db()
    return job


def expired(job_type="test.none", **columns):
    """Return a running job whose lease is over."""
    return claimed(job_type, lease_expires_at=now() - timedelta(seconds=1), **columns)


def unsaved(status, *, job_type="test.none", age=HOUR, lasted=timedelta(seconds=2), **columns):
    """Return a job of that status that ended, or was claimed, `age` ago."""
    moment = now() - age
    made = {"created_at": moment, "ready_at": moment}
    if status == JobStatus.RUNNING:
        made |= {
            "claim_token": uuid4(),
            "started_at": moment,
            "lease_seconds": LEASE.total_seconds(),
            "lease_expires_at": now() + LEASE,
            "attempts": 1,
        }
    elif status != JobStatus.PENDING:
        made |= {"finished_at": moment, "started_at": moment - lasted, "attempts": 1}
    return Job(type=job_type, status=status, **(made | columns))


def saved(*jobs):
    """Insert the jobs and return their ids."""
    return [job.pk for job in Job.objects.bulk_create(jobs)]


class Aside(threading.Thread):
    """Runs a function in a thread with connections of its own; `answer` waits for it."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self._function = lambda: function(*args)
        self._answer = self._error = None
        self.start()

    def run(self):
        try:
            self._answer = self._function()
        except Exception as error:  # noqa: BLE001 (raised again by `answer`)
            self._error = error
        finally:
            connections.close_all()

    def answer(self):
        self.join(30)
        assert not self.is_alive(), "The thread still runs."
        if self._error is not None:
            raise self._error
        return self._answer


@contextmanager
def another_connection():
    """A second connection to the same database."""
    other = connections.create_connection("default")
    other.settings_dict = connection.settings_dict
    try:
        yield other
    finally:
        other.close()


def backend_that_waits():
    """Return the process id of the one backend that waits for a lock, once there is one."""
    pause = threading.Event()
    for _ in range(1000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            found = cursor.fetchone()
        if found:
            return found[0]
        pause.wait(0.01)
    raise AssertionError("No backend waits for a lock.")
