"""What a database error means to the queue."""

from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

Answer = TypeVar("Answer")

CONFLICT_SQLSTATES = frozenset({"40001", "40P01"})
"""PostgreSQL: serialization_failure and deadlock_detected."""

CONFLICT_MYSQL_CODES = frozenset({1205, 1213})
"""MySQL: ER_LOCK_WAIT_TIMEOUT and ER_LOCK_DEADLOCK."""

CONFLICT_SQLITE_NAMES = frozenset({"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED"})

CONFLICT_RETRIES = 5

REFUSED_SQLSTATE_CLASSES = frozenset({"22", "23", "54"})
"""PostgreSQL: data exception, integrity violation, program limit exceeded."""


def is_conflict(error: DatabaseError) -> bool:
    """Whether the statement lost against a concurrent one and may simply be sent again."""
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) in CONFLICT_SQLSTATES:
        return True
    if getattr(cause, "sqlite_errorname", None) in CONFLICT_SQLITE_NAMES:
        return True
    args: tuple[object, ...] = getattr(cause, "args", ())
    return bool(args) and args[0] in CONFLICT_MYSQL_CODES


def is_refusal(error: Exception) -> bool:
    """Whether the database refused the content of a statement: sending it again is useless.

    Everything else (no connection, no disk, a server in recovery) may pass, so the statement is
    worth keeping.
    """
    if isinstance(error, OperationalError | InterfaceError):
        sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
        return sqlstate[:2] in REFUSED_SQLSTATE_CLASSES
    return True


def retry_conflicts(connection: BaseDatabaseWrapper, operation: Callable[[], Answer]) -> Answer:
    """Run `operation`, again when it lost against a concurrent statement.

    Inside a caller's transaction it runs once: only the caller can start that over.
    """
    if connection.in_atomic_block:
        return operation()
    for _ in range(CONFLICT_RETRIES):
        try:
            return operation()
        except DatabaseError as error:
            if not is_conflict(error):
                raise
    return operation()
