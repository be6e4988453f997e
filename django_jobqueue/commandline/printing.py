"""Output for people and for programs: aligned tables that fit the terminal, or JSON."""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO
from uuid import UUID

GAP = "  "
NARROWEST = 8
ELLIPSIS = "…"
NOTHING = frozenset({"", "-"})


class Printer:
    """Writes to a stream of text.

    `width`: the columns of the terminal, None for no terminal: lines are as long as they are then.
    `as_json`: the answer is one JSON document, and texts for people are left out.
    """

    def __init__(self, stream: TextIO, *, as_json: bool, width: int | None = None) -> None:
        self.as_json = as_json
        self.width = width
        self._stream = stream
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    def line(self, text: str = "") -> None:
        """Write one line for people."""
        if not self.as_json:
            self._write(printable(text))

    def document(self, value: Any) -> None:
        """Write the JSON document."""
        if self.as_json:
            self._write(as_json(value))

    def value(self, value: Any) -> None:
        """Write a JSON value for people, indented."""
        if not self.as_json:
            for line in as_json(value, ascii_only=False).splitlines():
                self._write("  " + printable(line))

    def block(self, text: str) -> None:
        """Write lines of text for people, indented."""
        for line in text.splitlines():
            self.line(f"  {line}")

    def table(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        flexible: Mapping[str, int],
        expendable: Sequence[str] = (),
    ) -> None:
        """Write an aligned table that fits the terminal as far as it can.

        `flexible`: columns that give way, each to its least width. `expendable`: columns that are
        left out on a terminal too narrow for all, the first of them first. A column with nothing
        in it is left out anyway.
        """
        if self.as_json:
            return
        columns = [
            [heading, *map(printable, cells)]
            for heading, *cells in zip(headings, *rows, strict=True)
            if not NOTHING.issuperset(cells)
        ]
        widths = [max(map(columns_of, column)) for column in columns]
        if self.width is not None:
            least = [
                min(width, flexible.get(column[0], width))
                for column, width in zip(columns, widths, strict=True)
            ]
            kept = affordable([column[0] for column in columns], least, expendable, self.width)
            columns = [columns[i] for i in kept]
            widths = fitted([widths[i] for i in kept], [least[i] for i in kept], self.width)
        for row in zip(*columns, strict=True):
            padded = [fit(cell, width) for cell, width in zip(row, widths, strict=True)]
            self._write(GAP.join(padded).rstrip())

    def _write(self, text: str) -> None:
        shown = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        self._stream.write(shown + "\n")


def as_json(value: Any, *, ascii_only: bool = True) -> str:
    """Return a value as indented JSON; moments are ISO 8601, ids are strings."""
    return json.dumps(value, indent=2, ensure_ascii=ascii_only, default=plain)


def plain(value: object) -> Any:
    """Return what JSON can hold of a moment or an id."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def shown(value: object) -> str:
    """Return a value of a row as people read it."""
    return value.isoformat(" ", "seconds") if isinstance(value, datetime) else str(value)


def printable(text: str) -> str:
    """Return the text without what a terminal would obey: control characters are spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def columns_of(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def fit(text: str, width: int) -> str:
    """Return the text in exactly that many columns, cut or filled."""
    if columns_of(text) > width:
        while text and columns_of(text) > width - 1:
            text = text[:-1]
        text += ELLIPSIS
    return text + " " * (width - columns_of(text))


def affordable(
    headings: Sequence[str], least: Sequence[int], expendable: Sequence[str], total: int
) -> list[int]:
    """Return which columns are shown, so that their least widths fit if leaving out can do it."""
    kept = list(range(len(headings)))
    for heading in expendable:
        if sum(least[i] for i in kept) + len(GAP) * (len(kept) - 1) <= total:
            break
        kept = [i for i in kept if headings[i] != heading]
    return kept


def fitted(widths: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Return widths that fit `total` columns as far as the least ones allow, widest first."""
    fits = list(widths)
    excess = sum(fits) + len(GAP) * (len(fits) - 1) - total
    while excess > 0:
        shrinkable = [i for i, width in enumerate(fits) if width > least[i]]
        if not shrinkable:
            break
        fits[max(shrinkable, key=lambda i: fits[i])] -= 1
        excess -= 1
    return fits


def span(seconds: float | None) -> str:
    """Return a duration in one unit a person reads at a glance; a dash for none."""
    if seconds is None:
        return "-"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 (two digits)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 job", "2 jobs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def keyed(fields: Mapping[str, str]) -> list[str]:
    """Return lines of names and values, the values aligned."""
    longest = max(map(len, fields), default=0)
    return [f"{name + ':':<{longest + 1}} {value}" for name, value in fields.items()]
