"""Expressions that read the same on every database."""

from collections.abc import Sequence
from typing import Any

from django.db.models import DurationField, FloatField, Func, IntegerField


class Seconds(Func):
    """A number of seconds as a duration: an interval on PostgreSQL, microseconds elsewhere."""

    arity = 1
    template = "(%(expressions)s * 1000000)"
    output_field = DurationField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Compile to an interval."""
        template = "(%(expressions)s * interval '1 second')"
        return super().as_sql(compiler, connection, template=template, **context)


class SecondsBetween(Func):
    """How many seconds lie between two moments, the earlier first: a float, to the microsecond."""

    arity = 2
    template = "(TIMESTAMPDIFF(MICROSECOND, %(expressions)s) / 1000000.0)"
    output_field = FloatField()

    def as_postgresql(self, compiler: Any, *_: Any, **__: Any) -> Any:
        """Compile to date_part: extract() would count in numeric, which costs twice as much."""
        start, end = self._operands(compiler)
        return f"date_part('epoch', {end[0]} - {start[0]})", (*end[1], *start[1])

    def as_sqlite(self, compiler: Any, *_: Any, **__: Any) -> Any:
        """Compile to SQLite's own functions: Django's for durations is Python's, and slow."""
        start, end = self._operands(compiler)
        # A moment is text; its fraction is left out where it is zero, and strftime would round it.
        whole = " - ".join(f"strftime('%%s', substr({each[0]}, 1, 19))" for each in (end, start))
        fraction = f"CAST(substr({end[0]}, 21) AS REAL) - CAST(substr({start[0]}, 21) AS REAL)"
        parameters = (*end[1], *start[1])
        return f"({whole} + ({fraction}) / 1000000.0)", parameters * 2

    def _operands(self, compiler: Any) -> list[tuple[str, Sequence[Any]]]:
        return [compiler.compile(operand) for operand in self.get_source_expressions()]


class WholePart(Func):
    """The whole part of a number that is not negative."""

    arity = 1
    template = "FLOOR(%(expressions)s)"
    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Compile to an integer: trunc() stays a float."""
        return super().as_sql(
            compiler, connection, template="trunc(%(expressions)s)::int", **context
        )

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Compile to a cast: Django's FLOOR is a call of Python for each row."""
        template = "CAST(%(expressions)s AS INTEGER)"
        return super().as_sql(compiler, connection, template=template, **context)
