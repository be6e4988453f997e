"""How a statement of ours reaches PostgreSQL."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from django.db import connections, transaction

from .base import Tables
from .clock import timed
from .errors import retry_conflicts
from .prepared import fetch_all

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from ..models import Job

Answer = TypeVar("Answer")
Parameters: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]
ValuesQuerySet: TypeAlias = "QuerySet[Job, Any]"


class Session:
    """One thread's way to the tables on one alias."""

    def __init__(self, tables: Tables, using: str) -> None:
        self.tables = tables
        self.using = using
        self.connection = connections[using]

    def fetch(self, text: str, parameters: Parameters) -> Sequence[Row]:
        """Run one of the statements that are sent all the time: it may be prepared."""
        statement = timed(text, parameters)
        return self.retry(lambda: fetch_all(self.connection, *statement))

    def rows(self, sql: str, parameters: Parameters, pick: str = "") -> list[Row]:
        """Run a statement by an ordinary cursor of the site's connection."""
        statement = timed(full_text(self.tables, sql, pick=pick), parameters)

        def run() -> list[Row]:
            with self.connection.cursor() as cursor:
                cursor.execute(*statement)
                return list(cursor.fetchall())

        return self.retry(run)

    def retry(self, run: Callable[[], Answer]) -> Answer:
        """Run it, again when it lost against a concurrent statement."""
        return retry_conflicts(self.connection, run)


def full_text(tables: Tables, sql: str, **parts: str) -> str:
    """Return a statement with the names of the tables, and other parts, filled in."""
    names = {
        "job": quoted(tables.job),
        "attempt": quoted(tables.attempt),
        "control": quoted(tables.control),
        "rollup": quoted(tables.rollup),
        "columns": columns(tables.job),
    }
    filled = {part: text.format(**names) for part, text in parts.items()}
    return sql.format(**names, **filled)


@cache
def quoted(model: Any) -> str:
    """Return the quoted table name of a model."""
    return f'"{model._meta.db_table}"'


@cache
def columns(model: Any) -> str:
    """Return the columns of a model in the order of its fields, for the table alias `job`."""
    return ", ".join(f'job."{field.column}"' for field in model._meta.concrete_fields)


def compiled(pick: "ValuesQuerySet", using: str) -> str:
    """Return a locking SELECT of the ORM as text."""
    operations: Any = connections[using].ops
    with transaction.atomic(using=using):  # The ORM compiles a locking SELECT only inside one.
        sql, params = pick.query.get_compiler(using).as_sql()
        text = str(operations.compose_sql(sql, params))
    # A value, such as a job's type, may hold what the cursor and `full_text` would fill in.
    return text.replace("%", "%%").replace("{", "{{").replace("}", "}}")
