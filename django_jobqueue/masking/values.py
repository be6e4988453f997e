"""Secrets in JSON values."""

from typing import Any

from . import names
from .covering import MASK
from .texts import text_masked

NAMES = ("name", "key")
VALUE = "value"
PAIR = 2
NAME_LENGTH = 60
"""What is longer is no name."""


def masked(value: Any) -> Any:
    """Return a copy of a JSON value with what looks like a secret replaced by asterisks.

    `value`: anything JSON can hold, nested however deep. Keys, lengths and order stay; tuples
    become lists. Text in it is treated as by `masked_text`. Secret is what stands under a secret
    key, second in a list of two after a secret name, after an option such as `--password`, and as
    the `value` of an object whose `name` or `key` is secret. The value itself is not changed.
    """
    extra = names.site_words()
    copies: dict[int, Any] = {}
    pending: list[tuple[Any, Any]] = []

    def copy_of(item: Any) -> Any:
        if isinstance(item, str):
            return text_masked(item, extra)
        if not isinstance(item, dict | list | tuple):
            return item
        if id(item) not in copies:  # A value that holds itself ends here too.
            copies[id(item)] = {} if isinstance(item, dict) else []
            pending.append((item, copies[id(item)]))
        return copies[id(item)]

    answer = copy_of(value)
    while pending:
        original, copy = pending.pop()
        if isinstance(original, dict):
            named = _name_in(original)
            for key, item in original.items():
                name = named if named and str(key).casefold() == VALUE else str(key)
                copy[key] = MASK if _hides(name, item, extra) else copy_of(item)
        else:
            name = ""
            for item in original:
                copy.append(MASK if name and _hides(name, item, extra) else copy_of(item))
                name = item if _announces(item, copy, original) else ""
    return answer


def _name_in(item: dict[Any, Any]) -> str:
    """Return the name in an object of the form `{"name": …, "value": …}`."""
    for key, name in item.items():
        if str(key).casefold() in NAMES and isinstance(name, str) and len(name) <= NAME_LENGTH:
            return name
    return ""


def _announces(item: Any, copy: list[Any], original: list[Any] | tuple[Any, ...]) -> bool:
    """Whether an item of a list is the name of the next: the first of two, or an option."""
    if not isinstance(item, str) or len(item) > NAME_LENGTH or len(item.split()) != 1:
        return False
    return item.startswith("--") or (len(original) == PAIR and len(copy) == 1)


def _hides(key: str, value: Any, extra: frozenset[str]) -> bool:
    """Whether a key is secret and the value under it may be one."""
    if value is None or isinstance(value, bool) or not names.secret(key, extra):
        return False
    return not (isinstance(value, int | float) and names.counts(key))
