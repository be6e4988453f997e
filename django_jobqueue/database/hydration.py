"""Rows of the jobs table as instances, at little cost."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import DateTimeField
from django.db.models.base import ModelState

from ..job_context import log_fields
from ..logs import get_logger
from .prepared import time_reader

if TYPE_CHECKING:
    from ..models import Job

logger = get_logger(__name__)


def maker_of(model: "type[Job]", using: str) -> "Callable[[Sequence[Any]], Job | None]":
    """Return what makes an instance of a row with every column of the model in order.

    It is what `Model.from_db` makes, without a call of `__init__` for every job, and so without
    the signals `pre_init` and `post_init`. A row that cannot be read makes none: it must not take
    the others of its claim along.
    """
    connection = connections[using]
    names, converters, times = plan_of(model)
    read_time = time_reader(connection.connection)
    naive = connection.timezone is None

    def make(row: Sequence[Any]) -> "Job | None":
        try:
            return read(row)
        except Exception:
            logger.exception(
                "Job %s cannot be read and is left to the reaper",
                row[0],
                extra=log_fields(row[0]),
            )
            return None

    def read(row: Sequence[Any]) -> "Job":
        instance = model.__new__(model)
        values = dict(zip(names, row, strict=True))
        for name, convert in converters:
            if values[name] is not None:
                values[name] = convert(values[name], None, connection)
        for name in times:
            if values[name] is not None:
                moment = read_time(values[name].encode())
                values[name] = moment.replace(tzinfo=None) if naive else moment
        instance.__dict__ = values
        instance._state = state = ModelState()  # noqa: SLF001 (as from_db does)
        state.adding = False
        state.db = using
        return instance

    return make


@cache
def plan_of(model: "type[Job]") -> tuple[list[str], list[tuple[str, Any]], list[str]]:
    """Return the attributes of a row, those to convert and how, and those that are times."""
    fields = model._meta.concrete_fields
    converters = [(f.attname, f.from_db_value) for f in fields if hasattr(f, "from_db_value")]
    times = [field.attname for field in fields if isinstance(field, DateTimeField)]
    return [field.attname for field in fields], converters, times
