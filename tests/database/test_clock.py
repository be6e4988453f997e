from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue.database.clock import database_now
from django_jobqueue.models import Job
from tests.marks import on_postgresql

MARGIN = timedelta(seconds=30)


@pytest.mark.django_db
def test_the_database_tells_the_time():
    assert abs(database_now(connection) - timezone.now()) < MARGIN


@on_postgresql
@pytest.mark.django_db
def test_time_goes_on_within_a_transaction():
    assert connection.in_atomic_block
    first, second = database_now(connection), database_now(connection)

    assert first < second


@pytest.mark.django_db
def test_the_time_is_comparable_with_a_column():
    job = Job.objects.enqueue("test.echo")

    assert job.created_at <= database_now(connection)


class MySQLCursor:
    """Answers as MySQL's driver does: UTC without a time zone."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def execute(self, sql):
        assert sql == "SELECT UTC_TIMESTAMP(6)"

    def fetchone(self):
        return (datetime(2026, 7, 1, 12),)  # noqa: DTZ001 (as MySQL gives it)


@pytest.mark.parametrize(
    ("zone", "moment"),
    [
        (UTC, datetime(2026, 7, 1, 12, tzinfo=UTC)),
        (None, datetime(2026, 7, 1, 12)),  # noqa: DTZ001 (USE_TZ is off)
    ],
)
def test_the_time_of_mysql_is_read_as_its_columns_are(zone, moment):
    mysql = SimpleNamespace(vendor="mysql", timezone=zone, cursor=MySQLCursor)

    assert database_now(mysql) == moment
