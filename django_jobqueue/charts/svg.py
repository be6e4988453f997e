"""The parts that pictures are made of."""

from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import slugify

WIDTH = 460
"""In the picture's own units; it is shown as wide as its place. Text is 13 of these high."""

CHARACTER = 7.5
"""How wide a character of a label is, about."""


def picture(
    name: str, title: str, description: str, height: float, parts: Iterable[SafeString]
) -> SafeString:
    """Return a whole picture. `name` makes its ids, so it is unique on the page."""
    mark = slugify(name)
    return format_html(
        '<svg class="jobqueue-chart" viewBox="0 0 {} {}" role="img" '
        'aria-labelledby="{}-title {}-desc" xmlns="http://www.w3.org/2000/svg">'
        '<title id="{}-title">{}</title><desc id="{}-desc">{}</desc>{}</svg>',
        WIDTH,
        number(height),
        mark,
        mark,
        mark,
        title,
        mark,
        description,
        joined(parts),
    )


def rectangle(
    x: float, y: float, width: float, height: float, kind: str, tip: str = ""
) -> SafeString:
    """Return a filled rectangle of a kind of value; `tip` shows when it is pointed at."""
    return format_html(
        '<rect class="jobqueue-{}" x="{}" y="{}" width="{}" height="{}">{}</rect>',
        kind,
        number(x),
        number(y),
        number(width),
        number(height),
        format_html("<title>{}</title>", tip) if tip else "",
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> SafeString:
    """Return a straight line."""
    return format_html(
        '<line class="jobqueue-{}" x1="{}" y1="{}" x2="{}" y2="{}"/>',
        kind,
        number(x1),
        number(y1),
        number(x2),
        number(y2),
    )


def text(x: float, y: float, words: object, anchor: str = "start") -> SafeString:
    """Return words that begin, end or are centred at a point."""
    return format_html(
        '<text x="{}" y="{}" text-anchor="{}">{}</text>', number(x), number(y), anchor, words
    )


def joined(parts: Iterable[SafeString]) -> SafeString:
    """Return parts one after the other."""
    return format_html_join("", "{}", ((part,) for part in parts))


def number(value: float) -> str:
    """Return a coordinate with no digits that nobody sees, whatever the language."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
