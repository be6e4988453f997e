"""Charts as SVG files. Imports matplotlib, so only in the benchmark's own environment."""

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# Text stays text, and the same numbers make the same file.
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "jobqueue", "font.size": 10}
WIDTH = 8.0
HEIGHT = 4.2
BAR_HEIGHT = 0.28
ROOM = 1.4


def draw(chart, path):
    """Draw a chart to a file. One without numbers is left out."""
    if not any(value is not None for values in chart.values.values() for value in values):
        return
    with mpl.rc_context(STYLE):
        bars = chart.kind == "bars"
        groups = len(chart.x) * len(chart.values)
        height = max(HEIGHT / 2, BAR_HEIGHT * groups + ROOM) if bars else HEIGHT
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        (draw_bars if bars else draw_lines)(axes, chart)
        axes.set_title(chart.title)
        axes.spines[["top", "right"]].set_visible(False)
        if len(chart.values) > 1:
            axes.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def label(value):
    """Return a number as people write it: no digits that nobody reads."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def draw_bars(axes, chart):
    """Draw a group of horizontal bars for each name."""
    thickness = 0.8 / len(chart.values)
    for index, (name, values) in enumerate(chart.values.items()):
        known = [place for place, value in enumerate(values) if value is not None]
        places = [place + (index - (len(chart.values) - 1) / 2) * thickness for place in known]
        heights = [values[place] for place in known]
        drawn = axes.barh(
            places,
            heights,
            thickness,
            label=name,
            color=COLOURS[index % len(COLOURS)],
            xerr=errors(chart, name, known),
            ecolor="#555555",
        )
        axes.bar_label(drawn, labels=[label(value) for value in heights], padding=4)
    axes.set_yticks(range(len(chart.x)), [str(name) for name in chart.x])
    axes.set_xlabel(chart.y_label)
    axes.margins(x=0.12)
    if len(chart.values) > 1:
        axes.invert_yaxis()
    if chart.log_y:
        axes.set_xscale("log")


def draw_lines(axes, chart):
    """Draw a line for each name, over places of equal distance."""
    for index, (name, values) in enumerate(chart.values.items()):
        known = [place for place, value in enumerate(values) if value is not None]
        axes.errorbar(
            known,
            [values[place] for place in known],
            yerr=errors(chart, name, known),
            label=name,
            marker="o",
            capsize=3,
            color=COLOURS[index % len(COLOURS)],
        )
    axes.set_xticks(range(len(chart.x)), [str(name) for name in chart.x])
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(axis="y", alpha=0.3)
    if chart.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def errors(chart, name, places):
    """Return how far below and above each number its span reaches; None without spans."""
    spans = chart.spans.get(name)
    if not spans:
        return None
    values = chart.values[name]
    pairs = [spans[place] or (values[place], values[place]) for place in places]
    return [
        [values[place] - low for place, (low, _) in zip(places, pairs, strict=True)],
        [high - values[place] for place, (_, high) in zip(places, pairs, strict=True)],
    ]
