"""A settle is refused after its group was written: what the group claimed is not lost for it.

A group's statement leaves out a row that somebody has locked, and the settle of that row is tried
alone afterwards. By then the group's claims are committed, whatever becomes of that one settle.
"""

import contextlib

import pytest
from django.db import connection, connections

from django_jobqueue import JobRequest
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import JobStatus
from tests.managers.rows import Aside
from tests.marks import on_postgresql
from tests.processes import eventually
from tests.worker.test_database_trouble import execute_around, refusing

TABLE, ATTEMPTS = Job._meta.db_table, JobAttempt._meta.db_table
PATIENCE_SECONDS = 10

pytestmark = [on_postgresql, pytest.mark.usefixtures("transactional_db")]


@contextlib.contextmanager
def session():
    """A connection of the test's own, in a transaction."""
    other = connections.create_connection("default")
    other.set_autocommit(False)
    raw = other.connection
    try:
        yield raw
    finally:
        raw.close()


def claims_that_can_wait():
    """Let claims wait while this connection holds the advisory lock."""
    return execute_around(
        [
            """
            CREATE FUNCTION wait_with_a_claim() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$""",
            f"""
            CREATE TRIGGER wait_with_a_claim BEFORE UPDATE ON {TABLE} FOR EACH ROW
            WHEN (OLD.status = 'pending' AND NEW.status = 'running')
            EXECUTE FUNCTION wait_with_a_claim()""",
        ],
        [f"DROP TRIGGER wait_with_a_claim ON {TABLE}", "DROP FUNCTION wait_with_a_claim()"],
    )


def claims_held_up():
    return execute_around(["SELECT pg_advisory_lock(4711)"], ["SELECT pg_advisory_unlock(4711)"])


def waiting(kind):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database AS base ON base.oid = database"
            " WHERE locktype = %s AND NOT granted AND datname = current_database()",
            [kind],
        )
        return cursor.fetchone()[0]


REFUSED_FOR_GOOD = ("22000", "true")
IN_CONFLICT_FOR_A_WHILE = ("40001", "nextval('conflicts') <= 7")


@pytest.mark.parametrize(
    ("sqlstate", "while_true"), [REFUSED_FOR_GOOD, IN_CONFLICT_FOR_A_WHILE], ids=["22000", "40001"]
)
def test_what_was_claimed_beside_it_runs(pools, meeting, sqlstate, while_true):
    first = Job.objects.enqueue("test.meet", meeting.payload)
    pools(1).start()
    guest = meeting.guest()
    more = Job.objects.enqueue_many([JobRequest("test.echo", {"n": n}) for n in range(3)])
    condition = f"OLD.id = '{first.pk}' AND NEW.status = 'succeeded' AND {while_true}"
    with (
        execute_around(["CREATE SEQUENCE conflicts"], ["DROP SEQUENCE conflicts"]),
        refusing(condition, sqlstate),
        claims_that_can_wait(),
        session() as holder,
        session() as locker,
    ):
        with claims_held_up():
            holder.execute(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE", [first.pk])
            guest.let_go()
            eventually(lambda: waiting("advisory"), "the next job is not claimed")
            # Gets its lock when the group is written, and then holds up the look at what was not.
            lock = Aside(lambda: locker.execute(f"LOCK TABLE {ATTEMPTS} IN ACCESS EXCLUSIVE MODE"))
            eventually(lambda: waiting("relation"), "the lock is not asked for")
        lock.answer()
        holder.rollback()
        locker.rollback()
        ids = [job.pk for job in more]
        done = Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED, attempts=1)
        eventually(
            lambda: done.count() == len(more),
            "a job that was claimed beside the refused settle does not run",
            PATIENCE_SECONDS,
        )
        eventually(lambda: Job.objects.terminal().count() == 4, "the first job was not settled")
