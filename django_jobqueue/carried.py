"""What rows carry as JSON, read for people: masked, at a cost that no stored value can raise.

It is asked for as text. What is too long or nested too deep to be read as JSON stays text, of which
the beginning is told.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Left, Length

from .masking import masked, masked_beginning

BEGINNING = 20_000
"""So many characters of what stays text are told."""

MOST_LEVELS = 100
"""Python's own JSON fails at a depth of several hundred; nobody reads that deep."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A stored JSON value without its secrets.

    `length`: how many characters of text are stored. `is_text`: `value` is not the JSON value but
    the beginning of its text.
    """

    value: Any
    length: int = 0
    is_text: bool = False


def carried_by(rows: QuerySet[Any], *columns: str, whole: int) -> Mapping[str, Carried]:
    """Return what the first of some rows carries in its JSON columns; empty without a row.

    `whole`: values of more characters than that stay text.
    """
    reading: dict[str, Any] = {}
    for name in columns:
        text = Cast(name, TextField())
        reading |= {f"{name}_text": Left(text, whole + 1), f"{name}_length": Length(text)}
    found = rows.annotate(**reading).values(*reading).first()
    if found is None:
        return {}
    return {
        name: carried_as(found[f"{name}_text"], found[f"{name}_length"] or 0, whole=whole)
        for name in columns
    }


def carried_as(text: str | None, length: int, *, whole: int) -> Carried:
    """Return what a text of JSON says, of which at least `whole` characters are given."""
    if text is None:
        return Carried(None)
    if length <= whole:
        try:
            value = json.loads(text)
        except (RecursionError, ValueError):  # ValueError: a number of thousands of digits.
            return Carried(masked_beginning(text, BEGINNING), length, is_text=True)
        if not is_deep(value):
            return Carried(masked(value), length)
    return Carried(masked_beginning(text, BEGINNING), length, is_text=True)


def is_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than `MOST_LEVELS`."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        nested = [item for item in level if isinstance(item, dict | list)]
        level = [
            inner
            for item in nested
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)
