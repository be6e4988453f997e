"""Statements that the server prepares once, on connections that ask for it.

A statement is written with psycopg's named parameters and sent with the numbered ones that
PostgreSQL itself knows, so that its text is parsed once only. A connection prepares when psycopg's
`prepare_threshold` is set on it, as a worker does. Behind a pooler that gives every transaction
another session, prepared statements get lost: then this process stops preparing them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Self

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import Format
from psycopg.types.string import TextLoader

from ..logs import get_logger

logger = get_logger(__name__)

PARAMETER = re.compile(r"%\((\w+)\)s|%%")

TIME_OID = psycopg.adapters.types["timestamptz"].oid

LOST = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)

CURSOR = "django_jobqueue_cursor"
"""Where a connection keeps its cursor, which is gone with it."""

unprepared_aliases: set[str] = set()
"""The aliases whose sessions lose what they have prepared."""


class PreparedCursor(psycopg.RawCursor[Any]):
    """A cursor for statements with named parameters, which are translated once."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        super().__init__(connection)
        # A time that Python cannot hold must not make the rows beside it unreadable.
        self.adapters.register_loader(TIME_OID, TextLoader)

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """Run a statement; `params` maps its names to values."""
        text, names = numbered(query)
        return super().execute(text, [params[name] for name in names], **options)


@lru_cache(maxsize=256)
def numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with `$1` for `%(name)s`, and the names in the order of their numbers."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return PARAMETER.sub(number, text).encode(), tuple(names)


def fetch_all(
    connection: BaseDatabaseWrapper, text: str, parameters: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Run a statement and return its rows, with times as text: see `time_reader`."""
    try:
        return run(connection, text, parameters)
    except Exception as error:
        if not isinstance(error.__cause__, LOST) or connection.in_atomic_block:
            raise
    stop_preparing(connection, "loses prepared statements")
    return run(connection, text, parameters)


def run(
    connection: BaseDatabaseWrapper, text: str, parameters: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Run a statement once."""
    connection.ensure_connection()
    cursor: Any = cursor_of(connection.connection)
    logged = connection.queries_logged
    wrap = connection.make_debug_cursor if logged else connection.make_cursor
    wrapped = wrap(cursor)
    wrapped.execute(text, parameters)
    rows: Sequence[tuple[Any, ...]] = wrapped.fetchall()
    return rows


def time_reader(raw: "psycopg.Connection[Any]") -> Callable[[bytes], datetime]:
    """Return what reads a time as the session writes it, in the session's time zone.

    It is psycopg's own. Django registers one on each connection that is written in Python.
    Raises psycopg.DataError for a time that Python cannot hold.
    """
    loader = psycopg.adapters.get_loader(TIME_OID, Format.TEXT)
    assert loader is not None
    return loader(TIME_OID, raw).load


def cursor_of(raw: "psycopg.Connection[Any]") -> PreparedCursor:
    """Return the one cursor that a connection has for these statements."""
    cursor: PreparedCursor | None = getattr(raw, CURSOR, None)
    if cursor is None:
        cursor = PreparedCursor(raw)
        setattr(raw, CURSOR, cursor)
    return cursor


def stop_preparing(connection: BaseDatabaseWrapper, reason: str) -> None:
    """Prepare nothing any more on this alias; say so once, and what the database does."""
    if connection.alias not in unprepared_aliases:
        unprepared_aliases.add(connection.alias)
        logger.warning(
            "The database %r %s, as a pooler does; going on without prepared statements.",
            connection.alias,
            reason,
        )
    if connection.connection is not None:
        connection.connection.prepare_threshold = None
