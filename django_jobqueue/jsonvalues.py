"""JSON values that every supported database can hold, checked before any SQL.

Python's encoder and PostgreSQL's jsonb disagree on NaN, NUL, lone surrogates and non-string
keys. What passes here is stored and read back unchanged, but for large floats: PostgreSQL gives
1e22 back as an integer of the same value.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from .exceptions import shown

MAX_DEPTH = 100
"""Nested containers allowed: far beyond real data, far below any parser's recursion limit."""

MAX_INTEGER_BITS = 2_126
"""640 decimal digits, the smallest limit a Python may be set to for reading integers back."""

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters PostgreSQL's text cannot hold: NUL and lone surrogates."""


class NotJSON(ValueError):
    """A value that cannot be stored as JSON. The text names its path and what is wrong."""


def json_copy(value: Any, path: str) -> Any:
    """Return a deep copy of `value` made of plain JSON types.

    `path` is what the value is called in errors, such as "payload". Tuples become lists.
    Raises NotJSON for anything JSON or a database cannot hold.
    """
    return _copy(value, path, MAX_DEPTH)


def encode(value: Any) -> str:
    """Return the JSON text of a value that `json_copy` returned."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode(text: str) -> Any:
    """Return the value of a JSON text, or None where Python cannot read what a database stored.

    That is a number of thousands of digits, or nesting beyond any parser's recursion limit.
    """
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return None


def check_size(value: Any, path: str, *, limit: int, remedy: str) -> None:
    """Raise NotJSON, with the remedy, for a copied value whose JSON text is over `limit` bytes."""
    size = len(encode(value).encode())
    if size > limit:
        raise NotJSON(f"{path} has {size:,} bytes; expected at most {limit:,}. {remedy}")


def storable_text(value: str) -> str:
    """Return `value` with NUL and lone surrogates replaced, so that any database takes it."""
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def text_problem(value: str) -> str | None:
    """Say what keeps a string out of a database, or None."""
    found = UNSTORABLE.search(value)
    if found is None:
        return None
    if found.group() == "\0":
        return "contains a NUL character, which a database cannot store; remove it"
    return f"contains the lone surrogate {found.group()!r}, which is not valid text; remove it"


def _copy(value: Any, path: str, depth: int) -> Any:
    if value is None or isinstance(value, bool | str | int | float):
        return _scalar(value, path)
    if not isinstance(value, Mapping | list | tuple):
        raise NotJSON(
            f"{path} is of type {type(value).__name__}, which JSON cannot hold; "
            "convert it to a string, number, list or object first."
        )
    if depth == 0:
        raise NotJSON(f"{path} is nested deeper than {MAX_DEPTH} levels; flatten it.")
    if isinstance(value, Mapping):
        return {
            _key(key, path): _copy(item, f"{path}.{key}", depth - 1) for key, item in value.items()
        }
    return [_copy(item, f"{path}[{index}]", depth - 1) for index, item in enumerate(value)]


def _scalar(value: Any, path: str) -> Any:
    """Return a value of its plain type, an enum's member as what it stands for."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if problem := text_problem(value):
            raise NotJSON(f"{path} {problem}.")
        return str.__str__(value)
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise NotJSON(f"{path} is an integer of over 640 digits; store it as a string.")
        return int(value)
    if not math.isfinite(value):
        raise NotJSON(f"{path} is {value!r}, which JSON has no number for; use null.")
    return float(value)


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise NotJSON(f"{path} has the key {shown(key)}; JSON keys are strings, so use a string.")
    if problem := text_problem(key):
        raise NotJSON(f"{path} has the key {shown(key)}, which {problem}.")
    return str.__str__(key)
