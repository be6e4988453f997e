"""The database's clock, the only one that two processes may compare times by.

Every time that a row holds comes from here: by `database_now`, by `database_clock`, or, in a
statement written as text, as NOW. So a test can put another clock in its place; see `pretend`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone

NOW = "statement_timestamp()"
"""How PostgreSQL's statements ask for the time: like this, and in no other words."""

PRETENDED_NOW = "%(pretended_now)s::timestamptz"

Clock = Callable[[], datetime]
"""Returns an aware time."""

_pretended: Clock | None = None
"""The clock of a test; None, always, in a process that is none."""


@contextmanager
def pretend(clock: Clock) -> Iterator[None]:
    """Let `clock` tell the time in the block, in every thread of this process. For tests only."""
    global _pretended  # noqa: PLW0603 (one clock for the whole process is what is wanted)
    before, _pretended = _pretended, clock
    try:
        yield
    finally:
        _pretended = before


def timed(text: str, parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return a statement and its parameters as they are, or asking a pretended clock."""
    clock = _pretended
    if clock is None:
        return text, parameters
    return text.replace(NOW, PRETENDED_NOW), {**parameters, "pretended_now": clock()}


def database_now(connection: BaseDatabaseWrapper) -> datetime:
    """Return the time by the database's clock, as Django would read it from a column."""
    clock = _pretended
    if clock is not None:
        return clock() if connection.timezone is not None else naive(clock())
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
    if connection.vendor == "postgresql" and _pretended is None:
        return Now()
    # Elsewhere Now() ignores the time zone that naive columns are kept in.
    return Value(database_now(connection), DateTimeField())


def naive(moment: datetime) -> datetime:
    """Return an aware time as the columns of a site without time zones hold it."""
    return timezone.make_naive(moment, timezone.get_default_timezone())
