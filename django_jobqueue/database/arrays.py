"""Arrays as PostgreSQL reads them in text.

As text an array has one parameter type whatever is in it, also with nothing but nulls, so that a
statement is prepared once. It is also several times faster than the driver's own lists.
"""

from collections.abc import Iterable
from uuid import UUID


def array(values: Iterable[UUID | str | float | None]) -> str:
    """Return the array literal of ids, texts, numbers or truth values; None is null.

    Source: "Array Input and Output Syntax" in PostgreSQL's manual.
    """
    return "{" + ",".join(map(element, values)) + "}"


def element(value: UUID | str | float | None) -> str:
    """Return one element of an array literal."""
    if value is None:
        return "NULL"
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
