"""Where a value in a text ends, and what is to stand for it.

A value is made of pieces: something in quotes, something in brackets with or without a name before
it (`HTTPBasicAuth('u', 'p')`), or a bare word. Operators join pieces to one value (`None or 'p'`,
`str = 'p'`).
"""

import re
from typing import NamedTuple

from . import names
from .covering import MASK, core, covered

OPENING = (
    r"""(?P<open>[bBrRuUfF]{0,2}+ (?P<quote> \\{1,7}["'] | \"{3} | '{3} | "(?!"") | '(?!'') ))"""
)
OPENED = re.compile(OPENING, re.VERBOSE)
ENCLOSED = re.compile(OPENING + r"| [\[({]", re.VERBOSE)
QUOTED = re.compile(
    OPENING
    # Looked at once and then repeated: what is inside is never tried in another way.
    + r"""(?= (?P<held> (?: (?P=quote){2}(?=\w) | (?!(?P=quote)) (?: \\. | [^\\] | \\ ) )* ) )
    (?P=held) (?P=quote)""",
    re.VERBOSE | re.DOTALL,
)
"""What quotes hold may have several lines, and their own sign in it twice, as in SQL."""

CALLED = re.compile(r"[\w.]*+(?=[\[({])")
BARE = re.compile(r"\S*+")
TAIL = re.compile(r"(?=\w)\S++")
LINE = re.compile(r"[^\r\n]*+")
OPERATOR = re.compile(r"[ \t]++(?:or|if|else|\|{1,2}|[+%=])[ \t]++(?=\S)")
MORE_WORDS = re.compile(r"[^\r\n,;]*+(?:[,;](?=\S)[^\r\n,;]*+)*")
IN_BRACKETS = re.compile(
    r""" "[^"\\]*+(?:\\.[^"\\]*+)*" | '[^'\\]*+(?:\\.[^'\\]*+)*' | \\. | [\[({] | [\])}] """,
    re.VERBOSE | re.DOTALL,
)
DEPTH = {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}


class Piece(NamedTuple):
    """A piece of a value: where it ends, and the signs that enclose it."""

    end: int
    open: str = ""
    close: str = ""
    cut: bool = False
    """Whether it was opened and never closed."""


class Spans:
    """Finds the values in one text.

    What closes a quote or a bracket is looked for up to the text's end. If there is none, the value
    ends with its line, and so does every later one of its kind without another look.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: set[str] = set()

    def cover(self, start: int, name: str, *, words: bool = False) -> tuple[str, int]:
        """Return what is to stand for the value that begins at `start`, and where the value ends.

        `name`: what the value stands under. `words`: whether a bare value goes on over blanks, to
        a comma or a semicolon before a blank, or to the line's end.
        """
        piece = self._piece(start)
        enclosed = piece.open and ENCLOSED.match(self._text, start)
        whole_line = names.header(name) and not enclosed
        while not (whole_line or self._stops(piece)) and (
            operator := OPERATOR.match(self._text, piece.end)
        ):
            piece = self._piece(operator.end())
        if piece.cut:
            return MASK, piece.end
        if piece.open and not whole_line:
            return f"{piece.open}{MASK}{piece.close}", piece.end
        end = piece.end
        if whole_line:
            end = self._end_of(LINE, end)
        elif words and not self._stops(piece):
            end = self._end_of(MORE_WORDS, end)
        value = self._text[start:end]
        inner = core(value)
        if inner in names.OBVIOUS or (names.NUMBER.match(inner) and names.counts(name)):
            return value, end
        return covered(value), end

    def _stops(self, piece: Piece) -> bool:
        return self._text[piece.end - 1] in ",;"

    def _piece(self, start: int) -> Piece:
        if opened := OPENED.match(self._text, start):
            quote = opened["quote"]
            end = self._quoted_end(start, quote)
            if end is None:
                return Piece(self._end_of(LINE, start), cut=True)
            return self._with_tail(Piece(end, opened["open"], quote))
        if called := CALLED.match(self._text, start):
            return self._brackets(called.end())
        return Piece(self._end_of(BARE, start))

    def _brackets(self, start: int) -> Piece:
        """Return what is in brackets, and in more that follow at once: `a(b).c(d)[e]`."""
        text = self._text
        while (end := self._bracket_end(start)) is not None:
            called = CALLED.match(text, end)
            if called is None:
                return self._with_tail(Piece(end, text[start], text[end - 1]))
            start = called.end()
        return Piece(self._end_of(LINE, start), cut=True)

    def _with_tail(self, piece: Piece) -> Piece:
        """Return the piece with the word that follows it at once: `"first"second`."""
        tail = TAIL.match(self._text, piece.end)
        return Piece(tail.end()) if tail else piece

    def _quoted_end(self, start: int, quote: str) -> int | None:
        if quote not in self._unclosed:
            if quoted := QUOTED.match(self._text, start):
                return quoted.end()
            self._unclosed.add(quote)
        return None

    def _bracket_end(self, start: int) -> int | None:
        if "(" not in self._unclosed:
            depth = 0
            for found in IN_BRACKETS.finditer(self._text, start):
                depth += DEPTH.get(found[0], 0)
                if depth == 0 and found[0] in DEPTH:
                    return found.end()
            self._unclosed.add("(")
        return None

    def _end_of(self, pattern: re.Pattern[str], start: int) -> int:
        found = pattern.match(self._text, start)
        return found.end() if found else start
