"""What only the database itself can tell. Runs with `check --database`, `migrate` and a worker."""

from collections.abc import Iterable
from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..models import Job
from ..worker.preflight import first_line
from .catalogue import message

OLDEST_MYSQL = (8, 0, 1)
OLDEST_MARIADB = (10, 6)


def check_connected(
    *, databases: Iterable[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """W006, E008 and W015, of those of the databases that hold jobs."""
    alias = Job.objects.write_alias
    if alias not in (databases or ()):
        return []
    try:
        return asked(connections[alias])
    except (DatabaseFailure, ImproperlyConfigured) as error:
        return [
            message(
                "W015",
                f'The database "{alias}" could not be asked: {first_line(error)}.',
                f'Start it, or correct DATABASES["{alias}"], and check again.',
            )
        ]


def asked(connection: BaseDatabaseWrapper) -> list[checks.CheckMessage]:
    """Return what is wrong with a database, by its kind; raises what connecting to it raises."""
    match connection.vendor:
        case "sqlite":
            return journal(connection)
        case "mysql":
            return skip_locked(connection)
        case _:
            return []


def journal(connection: BaseDatabaseWrapper) -> list[checks.CheckMessage]:
    """W006: readers and the writer wait for each other."""
    if connection.is_in_memory_db():  # type: ignore[attr-defined]
        return []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        mode = str(cursor.fetchone()[0]).lower()
    if mode == "wal":
        return []
    return [
        message(
            "W006",
            f'The journal mode of the database "{connection.alias}" is {mode}: whoever reads '
            "keeps workers from writing.",
            'Set OPTIONS["init_command"] to "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;".',
        )
    ]


def skip_locked(connection: Any) -> list[checks.CheckMessage]:
    """E008: two claims at once would wait for each other instead of sharing the rows."""
    maria = connection.mysql_is_mariadb
    oldest = OLDEST_MARIADB if maria else OLDEST_MYSQL
    if connection.mysql_version >= oldest:
        return []
    name = "MariaDB" if maria else "MySQL"
    return [
        message(
            "E008",
            f'The database "{connection.alias}" is {name} '
            f"{'.'.join(map(str, connection.mysql_version))}; expected "
            f"{'.'.join(map(str, oldest))} or newer.",
            "Older ones lack SKIP LOCKED. Upgrade the server.",
        )
    ]
