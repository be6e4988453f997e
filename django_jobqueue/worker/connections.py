"""Database connections around a handler: what it leaves behind reaches nobody else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..logs import get_logger

logger = get_logger(__name__)

CANCEL_SECONDS = 2.0


@contextmanager
def clean_connections() -> Iterator[None]:
    """Give the block usable connections of this thread, and discard those it spoiled.

    A connection that is closed inside a leaked `atomic` stays dead, and Django's own
    `close_old_connections` leaves one that is inside a transaction alone: both are removed, so
    that the next job of the thread begins with a new one. Work left uncommitted is rolled back.
    """
    tidy_connections()
    try:
        yield
    finally:
        for alias in tidy_connections():
            logger.warning(
                "A handler left its connection to %s in a transaction, which is rolled back", alias
            )


def tidy_connections() -> list[str]:
    """Close this thread's connections that are old, broken or inside a transaction. Never raises.

    Returns the aliases of those that were inside one. One that stays open is tested when a
    handler first uses it: it may have broken meanwhile.
    """
    inside = []
    for connection in connections.all(initialized_only=True):
        try:
            spoiled = is_spoiled(connection)
            if spoiled:
                inside.append(connection.alias)
            else:
                connection.close_if_unusable_or_obsolete()
                connection.health_check_enabled = True  # type: ignore[attr-defined]
        except Exception:
            logger.debug("A connection cannot say how it is", exc_info=True)
            spoiled = True
        if spoiled:
            discard(connection)
    return inside


def is_spoiled(connection: BaseDatabaseWrapper) -> bool:
    """Whether a handler left the connection in a transaction, or in a state of its own."""
    if connection.in_atomic_block or connection.closed_in_transaction:
        return True
    if connection.connection is None:
        return False
    own_mode = connection.autocommit != connection.settings_dict["AUTOCOMMIT"]
    return own_mode or inside_transaction(connection.connection)


def inside_transaction(raw: Any) -> bool:
    """Whether the driver's connection is in a transaction that Django may not know of."""
    if hasattr(raw, "in_transaction"):  # sqlite3
        return bool(raw.in_transaction)
    status = getattr(getattr(raw, "info", None), "transaction_status", None)  # psycopg
    return status is not None and status.name in {"ACTIVE", "INTRANS", "INERROR"}


def cancel_statement(connection: BaseDatabaseWrapper) -> None:
    """Cancel the statement that another thread runs on a connection. Never raises."""
    raw: Any = connection.connection
    try:
        if connection.vendor == "postgresql" and raw is not None:
            raw.cancel_safe(timeout=CANCEL_SECONDS)
        elif connection.vendor == "sqlite" and raw is not None:
            raw.interrupt()
    except Exception:
        logger.warning("A running statement could not be cancelled", exc_info=True)


def discard(connection: BaseDatabaseWrapper) -> None:
    """Close a connection whatever state it is in; the next use of its alias opens another."""
    connection.in_atomic_block = False
    connection.closed_in_transaction = False
    connection.savepoint_ids = []
    try:
        connection.close()
    except Exception:
        logger.warning("A handler's connection could not be closed", exc_info=True)
    del connections[connection.alias]
