"""What a measure hands over: numbers of each run, and what was to be reached."""

import statistics
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Series:
    """One figure, measured once a run. Without runs it was not measured, and `note` says why."""

    name: str
    unit: str
    runs: list[float]
    note: str = ""

    @property
    def median(self):
        return statistics.median(self.runs)

    @property
    def low(self):
        return min(self.runs)

    @property
    def high(self):
        return max(self.runs)


@dataclass(frozen=True)
class Reach:
    """A figure that was to be reached; `met` is None where it could not be judged."""

    text: str
    met: bool | None
    measured: str


@dataclass(frozen=True)
class Chart:
    """A chart of a table: `lines` over `x`, or `bars` with one group for each name in `x`.

    Each of `values` is a name and a number for each element of `x`; None leaves a gap. `spans`
    may give the low and the high of each number.
    """

    name: str
    title: str
    kind: str
    x: list
    x_label: str
    y_label: str
    values: dict[str, list[float | None]]
    spans: dict[str, list[tuple[float, float] | None]] = field(default_factory=dict)
    log_y: bool = False


@dataclass(frozen=True)
class Table:
    """The result of a measure: its figures, judged, and what to draw.

    `base` names the series that the report divides by each of the others. `errors` say what of
    this project could not be measured; the command then ends with an error.
    """

    title: str
    explanation: str
    series: list[Series]
    reaches: list[Reach]
    charts: list[Chart] = field(default_factory=list)
    base: str = ""
    errors: list[str] = field(default_factory=list)


def as_json(table):
    """Return the table as plain JSON types."""
    return asdict(table)


def from_json(data):
    """Return the table that `as_json` made `data` of."""
    parts = {"series": Series, "reaches": Reach, "charts": Chart}
    made = {name: [kind(**one) for one in data[name]] for name, kind in parts.items()}
    return Table(**(data | made))
