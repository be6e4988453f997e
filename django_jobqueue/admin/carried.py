"""Long texts, as those who may view payloads see them: masked, and no longer than a page."""

import json
from typing import NamedTuple

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from ..carried import BEGINNING, Carried
from ..masking import masked_beginning, masked_text

VALUE_LENGTH = BEGINNING
"""So many characters of a payload or a result are shown."""

WHOLE = 50_000
"""A value of more characters is not laid out: looking for its secrets would take too long."""

TEXT_LENGTH = 8_000
"""So many characters of a message or a traceback are shown."""


class Shown(NamedTuple):
    """A text to show, and a note when it is not all of it."""

    text: str
    note: str = ""


def json_text(carried: Carried) -> Shown:
    """Return a JSON value on indented lines, or the text that it stays."""
    if not carried.is_text:
        return cut(json.dumps(carried.value, indent=2, ensure_ascii=False), VALUE_LENGTH)
    return Shown(
        carried.value,
        _("Too long or nested too deep to be laid out: the beginning of %(all)s characters.")
        % {"all": shown_number(carried.length)},
    )


def error_text(text: str, length: int = TEXT_LENGTH) -> Shown:
    """Return a message, or the beginning of a long one, with its secrets masked."""
    return Shown(masked_beginning(text, length), cut(text, length).note)


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
