from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError

from django_jobqueue import registry, wakeups
from django_jobqueue.models import Job
from django_jobqueue.signals import job_settled
from django_jobqueue.testing import run_job
from django_jobqueue.testing.surroundings import contained, is_broken, kept_usable
from tests.marks import on_postgresql
from tests.testing.jobs import Handler


@pytest.mark.django_db
def test_a_connection_that_was_closed_in_a_transaction_is_named():
    try:
        with pytest.raises(TransactionManagementError, match="'default' was closed inside"):
            leave_closed()
    finally:
        connection.closed_in_transaction = False


def leave_closed():
    """Note what closing notes, without losing the connection of the test."""
    with kept_usable(connection):
        connection.closed_in_transaction = True


@pytest.mark.django_db
def test_a_robust_callback_that_fails_harms_nobody(caplog):
    ran = []
    with contained():
        transaction.on_commit(lambda: 1 // 0, robust=True)
        transaction.on_commit(lambda: transaction.on_commit(lambda: ran.append("later")))

    assert ran == ["later"]
    assert "A robust callback of on_commit failed" in caplog.text


@pytest.mark.django_db
def test_callbacks_registered_before_the_block_are_left_alone():
    ran = []
    transaction.on_commit(lambda: ran.append("before"))

    with contained():
        transaction.on_commit(lambda: ran.append("inside"))

    assert ran == ["inside"]
    assert len(connection.run_on_commit) == 1


@pytest.mark.django_db
def test_wake_ups_are_dropped_as_no_worker_can_see_the_jobs():
    heard = []
    wakeups.subscribe(heard.append)
    try:
        with contained(), transaction.atomic():
            Job.objects.enqueue("site.chain", {"left": 0})
    finally:
        wakeups.unsubscribe(heard.append)

    assert heard == []
    assert connection.run_on_commit == []


def test_a_driver_that_cannot_say_how_it_is_counts_as_well():
    assert not is_broken(SimpleNamespace(connection=None, needs_rollback=False))


def close(job):
    connection.close()


def close_and_fail(job):
    connection.close()
    raise ValueError("after that")


def close_and_ask(job):
    connection.close()
    Job.objects.count()


@on_postgresql  # A database in memory ignores it.
@pytest.mark.django_db
@pytest.mark.parametrize("function", [close, close_and_fail, close_and_ask])
@pytest.mark.parametrize("raise_errors", [True, False])
def test_a_handler_that_closes_the_tests_connection_is_told_so(function, raise_errors):
    registry.register(Handler("site.closes", function))

    with pytest.raises(TransactionManagementError, match="'default' was closed inside the test's"):
        run_job("site.closes", raise_errors=raise_errors)


@on_postgresql
@pytest.mark.django_db
def test_a_receiver_that_closes_the_tests_connection_is_told_so():
    def receive(**_):
        connection.close()

    job_settled.connect(receive)
    try:
        with pytest.raises(TransactionManagementError, match="'default' was closed inside"):
            run_job("site.chain", {"left": 0})
    finally:
        job_settled.disconnect(receive)


@pytest.mark.django_db(transaction=True)
def test_a_handler_may_close_the_connection_where_no_transaction_is_open():
    registry.register(Handler("site.closes", close))

    assert run_job("site.closes").outcome == "succeeded"
