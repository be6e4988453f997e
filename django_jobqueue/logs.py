"""The package's loggers: named by module, and nothing secret-looking leaves through them.

`get_logger(__name__)` is `logging.getLogger(__name__)` with one filter. It masks what a record is
about to carry out (its arguments and its traceback) before any handler of the site's sees it.
"""

import logging
import re
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any
from uuid import UUID

from .masking import MASK, is_secret, masked_text

HARMLESS = (Number, UUID, type(None))
"""Arguments that hold no text. Numbers stay numbers for formats such as `%d`."""

FORMATTER = logging.Formatter()

QUOTED_ROW = re.compile(r"(DETAIL|CONTEXT):.*")
"""Where PostgreSQL's errors quote rows: `Failing row contains (…)`, payload and all."""

Argument = Any


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a module; its records are masked."""
    logger = logging.getLogger(name)
    logger.addFilter(MASKING)
    return logger


class MaskingFilter(logging.Filter):
    """Masks a record in place.

    The text of the event stays as it is in the code, so that lines can be grouped by it. The
    exception leaves as masked text only (`exc_text`): a handler that got the object itself would
    format it as it likes.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record; a record that cannot be masked leaves without what it told."""
        try:
            if isinstance(record.args, Mapping):  # The one argument, for `%(name)s` or for `%s`.
                record.args = MaskedMapping(record.args)
            elif record.args:
                record.args = tuple(map(masked_argument, record.args))
            if record.exc_info:
                record.exc_text = fit_to_show(FORMATTER.formatException(record.exc_info))
        except Exception:  # noqa: BLE001 (somebody else's __str__)
            record.msg, record.args = f"{record.msg} (its details cannot be shown)", ()
        record.exc_info = None
        return True


MASKING = MaskingFilter()


def masked_argument(argument: Argument) -> Argument:
    """Return what stands for an argument of a log line."""
    if isinstance(argument, HARMLESS):
        return argument
    return fit_to_show(argument) if isinstance(argument, str) else Masked(argument)


def fit_to_show(text: str) -> str:
    """Return a text masked, and without the rows that PostgreSQL's errors quote."""
    return masked_text(QUOTED_ROW.sub(r"\1: (not shown)", text))


class Masked:
    """An object that shows itself masked; made into text only when a handler wants the line."""

    __slots__ = ("_shown",)

    def __init__(self, shown: object) -> None:
        self._shown = shown

    def __str__(self) -> str:
        return shown(str, self._shown)

    def __repr__(self) -> str:
        return shown(repr, self._shown)


class MaskedMapping(dict[str, Any]):
    """A mapping whose values are masked, by their own looks and by the names they stand under."""

    __slots__ = ()

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({name: masked_under(name, value) for name, value in values.items()})

    def __repr__(self) -> str:
        return shown(dict.__repr__, self)

    __str__ = __repr__


def masked_under(name: object, value: Argument) -> Argument:
    """Return what stands for an argument that has a name."""
    return MASK if isinstance(name, str) and is_secret(name) else masked_argument(value)


def shown(text_of: Callable[[Any], str], value: object) -> str:
    """Return a value as text, masked; never raises, as a line is being written."""
    try:
        return fit_to_show(text_of(value))
    except Exception:  # noqa: BLE001 (somebody else's __str__)
        return f"(a {type(value).__name__} that cannot be shown)"
