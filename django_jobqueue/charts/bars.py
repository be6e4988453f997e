"""Horizontal bars with a name and a number each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.formats import number_format
from django.utils.safestring import SafeString

from .svg import CHARACTER, WIDTH, line, picture, rectangle, text

ROW = 40.0
THICKNESS = 14.0
NAME = 15.0
LONGEST_NAME = 56
LEAST_SHOWN = 1.5


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: the value of each kind, from the left on."""

    name: str
    values: Mapping[str, int]
    tip: str = ""

    @property
    def total(self) -> int:
        """How long the bar is."""
        return sum(self.values.values())


def bars(name: str, title: str, description: str, data: Sequence[Bar]) -> SafeString:
    """Return a picture of bars, each below its name and with its number behind it."""
    longest = max((bar.total for bar in data), default=0)
    room = CHARACTER * len(shown(longest)) + 14
    scale = (WIDTH - room) / max(longest, 1)
    parts = [part for place, bar in enumerate(data) for part in row(bar, place * ROW, scale)]
    height = ROW * max(len(data), 1)
    return picture(name, title, description, height, [line(0.5, 0, 0.5, height, "axis"), *parts])


def row(bar: Bar, top: float, scale: float) -> Iterable[SafeString]:
    """Return a name, the rectangles of its bar and its number."""
    fits = len(bar.name) <= LONGEST_NAME
    yield text(6, top + NAME, bar.name if fits else bar.name[: LONGEST_NAME - 1] + "…")
    x = 1.0
    for kind, value in bar.values.items():
        if value:
            width = max(value * scale, LEAST_SHOWN)
            yield rectangle(x, top + NAME + 5, width, THICKNESS, kind, bar.tip)
            x += width
    yield text(x + 6, top + NAME + 5 + THICKNESS - 2, shown(bar.total))


def shown(value: int) -> str:
    """Return a number as the reader's language writes it."""
    return str(number_format(value, force_grouping=True))
