"""The package's loggers: named by module, and nothing secret-looking leaves through them.

`get_logger(__name__)` is `logging.getLogger(__name__)` with one filter. It masks what a record is
about to carry out (its arguments and its traceback) before any handler of the site's sees it.
"""

import logging
import re
from typing import Any
from uuid import UUID

from .masking import masked_text

HARMLESS = (int, float, UUID, type(None))
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
            if record.args:
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
        return fit_to_show(str(self._shown))

    def __repr__(self) -> str:
        return fit_to_show(repr(self._shown))
