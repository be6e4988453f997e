"""Expressions that read the same on every database."""

from typing import Any

from django.db.models import DurationField, Func


class Seconds(Func):
    """A number of seconds as a duration: an interval on PostgreSQL, microseconds elsewhere."""

    arity = 1
    template = "(%(expressions)s * 1000000)"
    output_field = DurationField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Compile to an interval."""
        template = "(%(expressions)s * interval '1 second')"
        return super().as_sql(compiler, connection, template=template, **context)
