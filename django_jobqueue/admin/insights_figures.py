"""The pictures and tables of the insights page, from the figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import inf
from typing import Any

from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..charts import Bar, Column, bars, columns
from ..insights import EDGES, Estimate, Overview, Spread, Tally, Totals
from ..wording import in_words, local_time, measured

MOST_BARS = 10
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with the table of its numbers."""

    title: str
    picture: SafeString
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One type in the table of types."""

    name: str
    tally: Tally
    spread: Spread | None
    estimate: Estimate | None
    totals: Totals

    @property
    def p50(self) -> str:
        """The median of the durations."""
        return measured(None if self.spread is None else self.spread.p50)

    @property
    def p95(self) -> str:
        """What nineteen of twenty runs stayed below."""
        return measured(None if self.spread is None else self.spread.p95)

    @property
    def mean(self) -> str:
        """The mean of the durations."""
        return measured(None if self.spread is None else self.spread.mean)

    @property
    def done_in(self) -> str:
        """When the work of the type will be done."""
        if self.estimate is None or self.estimate.seconds is None:
            return _("unknown")
        return in_words(self.estimate.seconds)


def figures_of(overview: Overview) -> Mapping[str, Any]:
    """Return what the template needs beside the overview itself."""
    return {
        "activity": activity_figure(overview),
        "distribution": distribution_figure(overview),
        "backlog": backlog_figure(overview),
        "types": type_rows(overview),
        "totals": sum(overview.lifetime.values(), Totals()),
    }


def activity_figure(overview: Overview) -> Figure:
    """Return what ended when."""
    activity = overview.activity
    short = overview.window <= DAY
    rows = [
        (
            moment(part.start),
            *map(shown, (part.succeeded, part.failed, part.cancelled)),
        )
        for part in activity.slices
    ]
    data = [
        Column(
            label_of(part.start, short=short),
            {
                "succeeded": part.succeeded,
                "failed": part.failed,
                "cancelled": part.cancelled,
            },
            _("%(start)s: %(succeeded)s succeeded, %(failed)s failed, %(cancelled)s cancelled")
            % dict(zip(("start", "succeeded", "failed", "cancelled"), row, strict=True)),
        )
        for part, row in zip(activity.slices, rows, strict=True)
    ]
    title = _("Throughput and failures")
    description = ngettext(
        "%(succeeded)s job succeeded and %(failed)s failed; each column stands for %(step)s.",
        "%(succeeded)s jobs succeeded and %(failed)s failed; each column stands for %(step)s.",
        activity.succeeded,
    ) % {
        "succeeded": shown(activity.succeeded),
        "failed": shown(activity.failed),
        "step": in_words(activity.step),
    }
    headings = (_("From"), _("Succeeded"), _("Failed"), _("Cancelled"))
    picture = columns("jobqueue-activity", title, description, data)
    return Figure(title, picture, headings, rows[::-1])


def distribution_figure(overview: Overview) -> Figure:
    """Return how durations spread."""
    counts = overview.durations.buckets
    ranges = [range_in_words(*pair) for pair in pairwise((0.0, *EDGES, inf))]
    used = [place for place, count in enumerate(counts) if count]
    some = slice(used[0], used[-1] + 1) if used else slice(0, 0)
    pairs = list(zip(ranges, counts, strict=True))[some]
    ends = [measured(edge) for edge in EDGES]
    data = [
        Column(
            _("< %(end)s") % {"end": ends[place]} if place < len(ends) else _("longer"),
            {"succeeded": counts[place]},
            f"{ranges[place]}: {shown(counts[place])}",
        )
        for place in range(some.start, some.stop)
    ]
    title = _("How long jobs took")
    overall = overview.durations.overall
    description = (
        _("No job succeeded in the window.")
        if overall is None
        else ngettext(
            "%(count)s job took %(p50)s.",
            "Half of %(count)s jobs took at most %(p50)s, nineteen of twenty at most %(p95)s.",
            overall.samples,
        )
        % {
            "count": shown(overall.samples),
            "p50": measured(overall.p50),
            "p95": measured(overall.p95),
        }
    )
    picture = columns("jobqueue-durations", title, description, data, most_labels=7)
    rows = [(words, shown(count)) for words, count in pairs]
    return Figure(title, picture, (_("Duration"), _("Jobs")), rows)


def range_in_words(low: float, high: float) -> str:
    """Return a range of durations."""
    if high == inf:
        return _("%(low)s and longer") % {"low": measured(low)}
    if not low:
        return _("under %(high)s") % {"high": measured(high)}
    return _("%(low)s to %(high)s") % {"low": measured(low), "high": measured(high)}


def backlog_figure(overview: Overview) -> Figure:
    """Return what waits and runs, the largest backlog first."""
    tallies = sorted(overview.now.by_type.items(), key=lambda item: (-item[1].active, item[0]))
    rows = [
        (name, *map(shown, (tally.ready, tally.scheduled, tally.running)))
        for name, tally in tallies
    ]
    data = [
        Bar(
            name,
            {"ready": tally.ready, "scheduled": tally.scheduled, "running": tally.running},
            _("%(name)s: %(ready)s ready, %(scheduled)s scheduled, %(running)s running")
            % dict(zip(("name", "ready", "scheduled", "running"), row, strict=True)),
        )
        for (name, tally), row in zip(tallies[:MOST_BARS], rows[:MOST_BARS], strict=True)
    ]
    title = _("Backlog by type")
    total = overview.now.total
    description = ngettext(
        "%(pending)s job waits; running: %(running)s.",
        "%(pending)s jobs wait; running: %(running)s.",
        total.pending,
    ) % {
        "pending": shown(total.pending),
        "running": shown(total.running),
    }
    headings = (_("Type"), _("Ready"), _("Scheduled"), _("Running"))
    return Figure(title, bars("jobqueue-backlog", title, description, data), headings, rows)


def type_rows(overview: Overview) -> list[TypeRow]:
    """Return every type that has, or ever had, a job."""
    tallies = overview.now.by_type
    return [
        TypeRow(
            name,
            tallies.get(name, Tally()),
            overview.durations.by_type.get(name),
            overview.etas.get(name),
            overview.lifetime.get(name, Totals()),
        )
        for name in sorted(tallies.keys() | overview.lifetime.keys())
    ]


def moment(at: datetime) -> str:
    """Return a moment in the reader's zone and language."""
    return date_format(local_time(at), "SHORT_DATETIME_FORMAT")


def label_of(at: datetime, *, short: bool) -> str:
    """Return what stands below a column: the time where the axis is short, else the day."""
    return date_format(local_time(at), "TIME_FORMAT" if short else "SHORT_DATE_FORMAT")


def shown(count: int) -> str:
    """Return a count as the reader's language writes it."""
    return str(number_format(count, force_grouping=True))
