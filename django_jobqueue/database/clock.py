"""The database's clock, the only one that two processes may compare times by."""

from datetime import UTC, datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone


def database_now(connection: BaseDatabaseWrapper) -> datetime:
    """Return the time by the database's clock, as Django would read it from a column."""
    if connection.vendor == "sqlite":
        return timezone.now()  # SQLite runs in this process: it has no other clock.
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("SELECT UTC_TIMESTAMP(6)")
            moment: datetime = cursor.fetchone()[0].replace(tzinfo=UTC)
            return moment if connection.timezone is not None else timezone.make_naive(moment)
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


def database_clock(connection: BaseDatabaseWrapper) -> Combinable:
    """Return an expression for the time of its own statement by the database's clock."""
    if connection.vendor == "postgresql":
        return Now()
    # Elsewhere Now() ignores the time zone that naive columns are kept in.
    return Value(database_now(connection), DateTimeField())
