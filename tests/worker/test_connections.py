"""Whatever a handler does to its database connection reaches nobody else."""

import asyncio
import socket

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, connections, transaction

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests import databases
from tests.marks import on_postgresql
from tests.processes import eventually


@pytest.fixture(params=[0, None], ids=["a connection a job", "lasting connections"])
def _connection_age(request):
    """Run with connections that end with the job, and with those that last."""
    settings = connections.settings["default"]
    before = settings["CONN_MAX_AGE"]
    settings["CONN_MAX_AGE"] = request.param
    yield
    settings["CONN_MAX_AGE"] = before


def close(alias):
    connections[alias].close()


def close_inside_atomic(alias):
    transaction.atomic().__enter__()
    write()
    connections[alias].close()


def leave_atomic_open(alias):
    transaction.atomic().__enter__()
    write()


def leave_two_atomics_open(alias):
    transaction.atomic().__enter__()
    transaction.atomic().__enter__()
    write()


def leave_a_failed_atomic_open(alias):
    transaction.atomic().__enter__()
    write()
    with pytest.raises(DatabaseError), connections[alias].cursor() as cursor:
        cursor.execute("SELECT no_such_column")


def turn_autocommit_off(alias):
    transaction.set_autocommit(autocommit=False)
    write()


def begin_by_hand(alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("BEGIN")
    write()


def close_the_drivers_connection(alias):
    connections[alias].ensure_connection()
    connections[alias].connection.close()


def close_the_drivers_connection_inside_atomic(alias):
    transaction.atomic().__enter__()
    write()
    connections[alias].connection.close()


def mark_for_rollback(alias):
    transaction.atomic().__enter__()
    write()
    transaction.set_rollback(True)


def forget_the_connection(alias):
    connections[alias].ensure_connection()
    connections[alias].close()
    del connections[alias]


def write():
    Group.objects.create(name="uncommitted")


def terminate_the_backend(alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def terminate_the_backend_and_hide_it(alias):
    with pytest.raises(DatabaseError):
        terminate_the_backend(alias)


def terminate_the_backend_inside_atomic(alias):
    transaction.atomic().__enter__()
    write()
    terminate_the_backend(alias)


def cut_the_socket(alias):
    connections[alias].ensure_connection()
    cut = socket.socket(fileno=connections[alias].connection.fileno())
    try:
        cut.shutdown(socket.SHUT_RDWR)
    finally:
        cut.detach()


ANYWHERE = [
    close,
    close_inside_atomic,
    leave_atomic_open,
    leave_two_atomics_open,
    leave_a_failed_atomic_open,
    turn_autocommit_off,
    begin_by_hand,
    close_the_drivers_connection,
    close_the_drivers_connection_inside_atomic,
    mark_for_rollback,
    forget_the_connection,
]
POSTGRESQL_ONLY = [
    terminate_the_backend,
    terminate_the_backend_and_hide_it,
    terminate_the_backend_inside_atomic,
    cut_the_socket,
]


def spoil_and_go_on(handler, drain, spoil, *, is_async=False):
    """Run a job that spoils its connection, and one behind it in the same slot."""

    def spoiling(job):
        spoil("default")
        return "spoiled"

    async def spoiling_async(job):
        return await sync_to_async(spoiling)(job)

    def going_on(job):
        Group.objects.create(name="committed")
        with transaction.atomic():
            assert Group.objects.select_for_update().get().name == "committed"
        return Job.objects.get(pk=job.pk).attempts

    async def going_on_async(job):
        return await sync_to_async(going_on)(job)

    chosen = (spoiling_async, going_on_async) if is_async else (spoiling, going_on)
    for name, function in zip(("spoiling", "going_on"), chosen, strict=True):
        handler(name=name, max_attempts=1)(function)
    Job.objects.enqueue("spoiling")
    Job.objects.enqueue("going_on", priority=1)
    drain()
    first, second = Job.objects.order_by("priority")
    assert second.status == JobStatus.SUCCEEDED, second.last_error
    assert second.result == 1
    assert first.status in {JobStatus.SUCCEEDED, JobStatus.FAILED}
    assert first.attempts == 1
    assert [group.name for group in Group.objects.all()] == ["committed"]
    return first


@pytest.mark.usefixtures("_connection_age")
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("spoil", ANYWHERE)
def test_the_next_job_of_the_slot_is_not_harmed(handler, drain, spoil, is_async):
    first = spoil_and_go_on(handler, drain, spoil, is_async=is_async)

    assert (first.status, first.result) == (JobStatus.SUCCEEDED, "spoiled")


@pytest.mark.usefixtures("_connection_age")
@on_postgresql
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("spoil", POSTGRESQL_ONLY)
def test_a_broken_connection_does_not_reach_the_next_job(handler, drain, spoil, is_async):
    first = spoil_and_go_on(handler, drain, spoil, is_async=is_async)

    broke = spoil in {terminate_the_backend, terminate_the_backend_inside_atomic}
    assert first.status == (JobStatus.FAILED if broke else JobStatus.SUCCEEDED)


@on_postgresql
def test_a_connection_that_breaks_between_two_jobs_does_not_reach_the_second(
    handler, pools, monkeypatch
):
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", None)

    @handler(max_attempts=1)
    def own_backend(job):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return cursor.fetchone()[0]

    pools(1).start()
    pids = []
    for _ in range(2):
        job = Job.objects.enqueue("own_backend")
        eventually(lambda job=job: Job.objects.terminal().filter(pk=job.pk).exists(), "no end")
        job.refresh_from_db()
        assert job.status == JobStatus.SUCCEEDED, job.last_error
        pids.append(job.result)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [job.result])

    assert pids[0] != pids[1]


@on_postgresql
def test_the_handlers_transaction_is_not_the_queues(handler, pools, meeting):
    """A job whose transaction stays open does not delay the settles of others."""

    @handler
    def hold(job):
        from tests.testapp.meeting import meet

        with transaction.atomic():
            Group.objects.create(name="later")
            meet(job)

    Job.objects.enqueue("hold", meeting.payload, priority=-1)
    pools(2).start()
    guest = meeting.guest()
    job = Job.objects.enqueue("test.echo")

    eventually(lambda: Job.objects.terminal().filter(pk=job.pk).exists(), "the settle waited")

    assert not Group.objects.exists()
    guest.let_go()
    eventually(Group.objects.exists, "the transaction did not commit")


def test_what_a_failing_handler_left_open_is_rolled_back(handler, drain):
    @handler(max_attempts=1)
    def fail(job):
        transaction.atomic().__enter__()
        write()
        raise ValueError

    Job.objects.enqueue("fail")
    drain()

    assert Job.objects.get().status == JobStatus.FAILED
    assert not Group.objects.exists()


def test_what_a_failing_handler_committed_stays(handler, drain):
    @handler(max_attempts=1)
    def fail(job):
        write()
        raise ValueError

    Job.objects.enqueue("fail")
    drain()

    assert Group.objects.get().name == "uncommitted"


def write_and_close():
    write()
    connections.close_all()


def test_a_handler_may_run_on_a_thread_of_its_own(handler, drain):
    @handler
    async def branch(job):
        await asyncio.to_thread(write_and_close)

    Job.objects.enqueue("branch")
    drain()

    assert Job.objects.get().status == JobStatus.SUCCEEDED


@on_postgresql
def test_no_connection_of_a_pool_outlives_it(handler, drain):
    @handler
    async def look(job):
        return await Group.objects.aexists()

    @handler
    def look_too(job):
        return Group.objects.count()

    Job.objects.enqueue("look")
    Job.objects.enqueue("look_too")
    drain(2)

    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 2
    eventually(lambda: other_sessions() == 0, "a connection of the pool is still open")


def other_sessions():
    assert connection.vendor == databases.POSTGRESQL
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0]
