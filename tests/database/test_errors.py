import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from django_jobqueue.database.errors import (
    CONFLICT_RETRIES,
    is_conflict,
    is_refusal,
    retry_conflicts,
)
from django_jobqueue.models import Job
from tests.aliases import alias
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql, on_sqlite
from tests.threads import Meeting, together


def error_of(sql, *params):
    """The error with which this database answers."""
    with (
        pytest.raises(DatabaseError) as raised,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql, params)
    return raised.value


def chained(error, cause):
    error.__cause__ = cause
    return error


class Counted:
    """An operation that fails its first `failures` times."""

    def __init__(self, failures, error):
        self.failures, self.error, self.calls = failures, error, 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "done"


class PostgresCause(Exception):
    sqlstate = "40001"


CONFLICT = chained(OperationalError("lost"), PostgresCause())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("failures", [0, 1, CONFLICT_RETRIES])
def test_a_conflict_is_tried_again(failures):
    operation = Counted(failures, CONFLICT)

    assert retry_conflicts(connection, operation) == "done"
    assert operation.calls == failures + 1


@pytest.mark.django_db(transaction=True)
def test_a_conflict_that_stays_is_raised_in_the_end():
    operation = Counted(99, CONFLICT)

    with pytest.raises(OperationalError, match="lost"):
        retry_conflicts(connection, operation)

    assert operation.calls == CONFLICT_RETRIES + 1


@pytest.mark.django_db(transaction=True)
def test_another_error_is_raised_at_once():
    operation = Counted(99, DataError("bad"))

    with pytest.raises(DataError):
        retry_conflicts(connection, operation)

    assert operation.calls == 1


@pytest.mark.django_db
def test_a_conflict_within_the_caller_s_transaction_is_the_caller_s():
    operation = Counted(99, CONFLICT)

    with transaction.atomic(), pytest.raises(OperationalError):
        retry_conflicts(connection, operation)

    assert operation.calls == 1


@pytest.mark.parametrize("code", [1205, 1213])
def test_a_deadlock_or_lock_timeout_of_mysql_is_a_conflict(code):
    assert is_conflict(chained(OperationalError(), Exception(code, "Deadlock found")))


@pytest.mark.parametrize("cause", [None, Exception(), Exception(1064, "syntax"), Exception("text")])
def test_what_names_no_conflict_is_none(cause):
    assert not is_conflict(chained(OperationalError(), cause))


@committed
@on_postgresql
def test_a_deadlock_is_tried_again():
    first, second = JobFactory.create_batch(2)
    meeting = Meeting(2)
    tries = []

    def lock(*jobs):
        def operation():
            tries.append(jobs)
            with transaction.atomic():
                Job.objects.filter(pk=jobs[0].pk).update(reason="x")
                if len(tries) <= 2:
                    meeting.wait()
                Job.objects.filter(pk=jobs[1].pk).update(reason="y")
            return "done"

        return retry_conflicts(connections["default"], operation)

    assert together(lambda: lock(first, second), lambda: lock(second, first)) == ["done", "done"]
    assert len(tries) > 2


@committed
@on_postgresql
def test_a_serialization_failure_is_tried_again():
    job = JobFactory()
    tries = []

    def operation():
        tries.append(None)
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            attempts = Job.objects.get(pk=job.pk).attempts
            if len(tries) == 1:
                together(lambda: Job.objects.update(attempts=5))
            Job.objects.update(attempts=attempts + 1)

    retry_conflicts(connection, operation)

    assert len(tries) == 2
    assert Job.objects.get().attempts == 6


@committed
@on_sqlite
def test_a_locked_file_is_a_conflict():
    options = connections["default"].settings_dict["OPTIONS"] | {"timeout": 0.01}
    with alias("impatient", OPTIONS=options):
        connections["impatient"].connect()
        tries = []

        def operation():
            tries.append(None)
            if len(tries) == 3:
                connection.rollback()
                connection.set_autocommit(True)
            with transaction.atomic(using="impatient"):
                return Job.objects.using("impatient").update(reason="x")

        connection.set_autocommit(False)
        Job.objects.update(reason="y")
        assert retry_conflicts(connections["impatient"], operation) == 0
        assert len(tries) == 3


# Refusals


@pytest.mark.django_db
def test_a_broken_constraint_is_a_refusal():
    JobFactory()

    error = error_of("UPDATE django_jobqueue_job SET status = 'waiting'")

    assert isinstance(error, IntegrityError)
    assert is_refusal(error)
    assert not is_conflict(error)


@on_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'x'::jsonb",
        "SELECT repeat('x', 300)::varchar(9)::int",
        "SELECT 1 / 0",
        "SELECT (repeat('[', 100000) || repeat(']', 100000))::jsonb",
        "SELECT repeat(repeat('x', 1000000), 2000)",
        "SELECT 'a' || chr(0)",
    ],
)
def test_what_the_database_refuses_for_its_content_is_a_refusal(sql):
    assert is_refusal(error_of(sql))


@on_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize(
    "sqlstate",
    ["57P01", "57P03", "53100", "53300", "08006", "25006", "40001", "40P01", "55P03", "57014"],
)
def test_what_may_pass_is_no_refusal(sqlstate):
    error = error_of(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{sqlstate}'; END $$")

    assert not is_refusal(error)


@on_postgresql
def test_a_server_that_is_away_refuses_nothing(django_db_setup, django_db_blocker):
    with (
        django_db_blocker.unblock(),
        alias("away", PORT="1"),
        pytest.raises(OperationalError) as raised,
        connections["away"].wrap_database_errors,
    ):
        connections["away"].connect()

    assert not is_refusal(raised.value)
    assert not is_conflict(raised.value)


@pytest.mark.parametrize("error", [InterfaceError("closed"), OperationalError("gone")])
def test_a_lost_connection_is_no_refusal(error):
    assert not is_refusal(error)


@pytest.mark.parametrize("error", [TypeError(), ValueError(), DataError()])
def test_what_cannot_be_sent_at_all_is_a_refusal(error):
    assert is_refusal(error)
