"""What a database error means to the queue."""

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, DataError, IntegrityError
from django.db import Error as DatabaseFailure
from django.db.backends.base.base import BaseDatabaseWrapper

Answer = TypeVar("Answer")

CONFLICT_SQLSTATES = frozenset({"40001", "40P01"})
"""PostgreSQL: serialization_failure and deadlock_detected."""

CONFLICT_MYSQL_CODES = frozenset({1205, 1213})
"""MySQL: ER_LOCK_WAIT_TIMEOUT and ER_LOCK_DEADLOCK."""

CONFLICT_SQLITE_NAMES = frozenset({"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED"})

CANCELLED_SQLSTATES = frozenset({"57014"})
"""PostgreSQL: query_canceled, by statement_timeout or by an administrator."""

CANCELLED_MYSQL_CODES = frozenset({1317, 1969, 3024})
"""MySQL: ER_QUERY_INTERRUPTED, ER_QUERY_TIMEOUT; MariaDB: ER_STATEMENT_TIMEOUT."""

LOCK_TIMEOUT_SQLSTATE = "55P03"
"""PostgreSQL: lock_not_available, also what `lock_timeout` raises."""

CONFLICT_RETRIES = 6
FIRST_CONFLICT_SECONDS = 0.004

REFUSED_SQLSTATE_CLASSES = frozenset({"22", "23", "54", "P0"})
"""PostgreSQL: data exception, integrity violation, program limit exceeded, a trigger's RAISE."""


def is_conflict(error: DatabaseError) -> bool:
    """Whether the statement lost against a concurrent one and may simply be sent again."""
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) in CONFLICT_SQLSTATES:
        return True
    if getattr(cause, "sqlite_errorname", None) in CONFLICT_SQLITE_NAMES:
        return True
    args: tuple[object, ...] = getattr(cause, "args", ())
    return bool(args) and args[0] in CONFLICT_MYSQL_CODES


def is_cancelled(error: DatabaseError) -> bool:
    """Whether the database ended the statement early, as a rule for the time it took."""
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) in CANCELLED_SQLSTATES:
        return True
    args: tuple[object, ...] = getattr(cause, "args", ())
    return bool(args) and args[0] in CANCELLED_MYSQL_CODES


def is_lock_timeout(error: DatabaseError) -> bool:
    """Whether the statement waited for a lock for as long as it was allowed to."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_TIMEOUT_SQLSTATE


def is_refusal(error: Exception) -> bool:
    """Whether the content of a statement was refused: sending it again is useless.

    Everything else (no connection, no disk, a server that is read-only after a failover) may
    pass, so the statement is worth keeping. What is no database error was refused by the driver.
    """
    if not isinstance(error, DatabaseFailure):
        return True
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    if sqlstate is not None:
        return sqlstate[:2] in REFUSED_SQLSTATE_CLASSES
    return isinstance(error, DataError | IntegrityError)


def retry_conflicts(connection: BaseDatabaseWrapper, operation: Callable[[], Answer]) -> Answer:
    """Run `operation`, again when it lost against a concurrent statement.

    Inside a caller's transaction it runs once: only the caller can start that over.
    """
    if connection.in_atomic_block:
        return operation()
    for doublings in range(CONFLICT_RETRIES):
        try:
            return operation()
        except DatabaseError as error:
            if not is_conflict(error):
                raise
        # Those who met here must not meet again at once.
        spread = random.random()  # noqa: S311 (guards nothing)
        threading.Event().wait(spread * FIRST_CONFLICT_SECONDS * 2**doublings)
    return operation()
