"""Columns over an axis of equal steps, each of one or more values on top of each other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.formats import number_format
from django.utils.safestring import SafeString

from .scale import nice_ticks
from .svg import CHARACTER, WIDTH, line, picture, rectangle, text

HEIGHT = 210.0
TOP = 12.0
BOTTOM = 26.0
RIGHT = 6.0
GAP = 0.15
LEAST_SHOWN = 1.5
"""A value that is not zero is this high at least: one failure among thousands is seen."""


@dataclass(frozen=True, slots=True)
class Column:
    """One step of the axis: the value of each kind, from the bottom up.

    `label` stands below where there is room; `tip` shows when the column is pointed at.
    """

    label: str
    values: Mapping[str, int]
    tip: str = ""

    @property
    def total(self) -> int:
        """How high the column is."""
        return sum(self.values.values())


def columns(
    name: str, title: str, description: str, data: Sequence[Column], *, most_labels: int = 4
) -> SafeString:
    """Return a picture of columns. `most_labels`: so many labels stand below, evenly spaced."""
    ticks = nice_ticks(max((column.total for column in data), default=0))
    left = CHARACTER * max(len(number_format(tick, force_grouping=True)) for tick in ticks) + 8
    plot = Plot(left, HEIGHT - BOTTOM, (WIDTH - RIGHT - left) / max(len(data), 1), ticks[-1])
    every = -(-len(data) // most_labels)
    parts = [
        *axis(plot, ticks),
        *(part for place, column in enumerate(data) for part in stacked(plot, place, column)),
        *(
            text(plot.middle(place), HEIGHT - 8, data[place].label, "middle")
            for place in range(every // 2, len(data), max(every, 1))
        ),
    ]
    return picture(name, title, description, HEIGHT, parts)


@dataclass(frozen=True, slots=True)
class Plot:
    """Where values lie in the picture."""

    left: float
    base: float
    step: float
    highest: int

    def height(self, value: int) -> float:
        """Return how high a value is."""
        return (self.base - TOP) * value / self.highest

    def middle(self, place: int) -> float:
        """Return where the middle of a column is."""
        return self.left + (place + 0.5) * self.step


def axis(plot: Plot, ticks: Iterable[int]) -> Iterable[SafeString]:
    """Return a line and a number for each tick."""
    for tick in ticks:
        y = plot.base - plot.height(tick)
        yield line(plot.left, y, WIDTH - RIGHT, y, "grid" if tick else "axis")
        yield text(plot.left - 6, y + 4, number_format(tick, force_grouping=True), "end")


def stacked(plot: Plot, place: int, column: Column) -> Iterable[SafeString]:
    """Return the rectangles of one column, from the bottom up."""
    top = plot.base
    for kind, value in column.values.items():
        if value:
            height = max(plot.height(value), LEAST_SHOWN)
            top -= height
            x = plot.left + (place + GAP / 2) * plot.step
            yield rectangle(x, top, plot.step * (1 - GAP), height, kind, column.tip)
