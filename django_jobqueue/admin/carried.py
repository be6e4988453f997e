"""What a job carries, as those who may view payloads see it: masked, and no longer than a page."""

import json
from typing import Any, NamedTuple

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from ..masking import masked, masked_text

VALUE_LENGTH = 20_000
"""So many characters of a payload or a result are shown."""

TEXT_LENGTH = 8_000
"""So many characters of a message or a traceback are shown."""


class Shown(NamedTuple):
    """A text to show, and a note when it is not all of it."""

    text: str
    note: str = ""


def pretty_json(value: Any) -> Shown:
    """Return a JSON value on indented lines, its secrets masked."""
    text = json.dumps(masked(value), indent=2, ensure_ascii=False)
    return cut(text, VALUE_LENGTH)


def error_text(text: str) -> Shown:
    """Return a message with its secrets masked."""
    return cut(masked_text(text), TEXT_LENGTH)


def traceback_text(text: str) -> Shown:
    """Return the end of a traceback, where the error is, with its secrets masked."""
    whole = masked_text(text)
    if len(whole) <= TEXT_LENGTH:
        return Shown(whole)
    return Shown(whole[-TEXT_LENGTH:], _("The last %(count)s of %(all)s characters.") % of(whole))


def cut(text: str, length: int) -> Shown:
    """Return the beginning of a text that is too long, and say so."""
    if len(text) <= length:
        return Shown(text)
    numbers = of(text) | {"count": shown_number(length)}
    return Shown(text[:length], _("The first %(count)s of %(all)s characters.") % numbers)


def of(text: str) -> dict[str, str]:
    """Return the numbers for a note on a text that was cut."""
    return {"count": shown_number(TEXT_LENGTH), "all": shown_number(len(text))}


def shown_number(number: int) -> str:
    """Return a number as people write it."""
    return number_format(number, use_l10n=True, force_grouping=True)
