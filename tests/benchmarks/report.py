"""The report: results as JSON, as Markdown, and as charts."""

import json

from tests.benchmarks import results

SMALL = 10
TINY = 0.1


def write(folder, about, tables):
    """Write `results.json`, `report.md` and the charts; return the path of the report."""
    from tests.benchmarks import charts

    folder.mkdir(parents=True, exist_ok=True)
    data = {"about": about, "tables": [results.as_json(table) for table in tables]}
    (folder / "results.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    for table in tables:
        for chart in table.charts:
            charts.draw(chart, folder / f"{chart.name}.svg")
    path = folder / "report.md"
    path.write_text(text(about, tables))
    return path


def read(path):
    """Return what `write` was given, from its `results.json`."""
    data = json.loads(path.read_text())
    return data["about"], [results.from_json(table) for table in data["tables"]]


def text(about, tables):
    """Return the report as Markdown."""
    parts = ["# Benchmark", *background(about), *summary(tables)]
    for table in tables:
        parts += [f"## {table.title}", table.explanation, *reaches(table.reaches), *figures(table)]
        parts += [f"Not measured, by a mistake: {error}" for error in table.errors]
        parts += [f"![{chart.title}]({chart.name}.svg)" for chart in table.charts if chart.x]
    return "\n\n".join(parts) + "\n"


def background(about):
    if about["quick"]:
        yield "A quick run: its numbers only show that the benchmark works."
    yield (
        f"{about['date']}, commit {about['commit']}. Figures are medians, beside them the lowest "
        f"and the highest; of {about['runs']} run{'s' if about['runs'] > 1 else ''} unless their "
        "table says otherwise."
    )
    machine, server = about["machine"], about["server"]
    if "off" in {server["fsync"], server["synchronous_commit"]}:
        yield "The server does not wait for its disk (fsync or synchronous_commit is off)."
    hardware = f"{machine['processor']}, {machine['cores']} cores, {machine['memory']} memory"
    settings = ", ".join(f"{key} = {value}" for key, value in server.items() if key != "version")
    rows = [
        ("Machine", hardware),
        ("System", machine["system"]),
        ("Server", f"{server['version']}: {settings}"),
        ("Redis", about["redis"]),
        ("Versions", ", ".join(f"{name} {value}" for name, value in about["versions"].items())),
    ]
    yield table_of(["", ""], rows)


def summary(tables):
    every = [reach for table in tables for reach in table.reaches]
    if every:
        met = sum(reach.met is True for reach in every)
        missed = sum(reach.met is False for reach in every)
        yield f"Reaches: {met} met, {missed} missed, {len(every) - met - missed} not judged."


def reaches(those):
    if those:
        rows = [(reach.text, reach.measured, verdict(reach)) for reach in those]
        yield table_of(["Reach", "Measured", ""], rows)


def verdict(reach):
    return {True: "met", False: "**missed**", None: "not judged"}[reach.met]


def figures(table):
    base = next((one for one in table.series if one.name == table.base and one.runs), None)
    rows = [row_of(one, base) for one in table.series]
    heads = ["", "Median", "Low to high", "Unit", "Runs"]
    if base:
        heads.append(f"{base.name} ÷ this")
    if rows:
        yield table_of([*heads, "Note"], rows)


def row_of(one, base):
    if one.runs:
        span = f"{number(one.low)} to {number(one.high)}" if len(one.runs) > 1 else ""
        cells = [one.name, number(one.median), span, one.unit, len(one.runs)]
    else:
        cells = [one.name, "", "", one.unit, 0]
    if base:
        comparable = one.runs and one.unit == base.unit and one.median
        cells.append(f"{base.median / one.median:.2f}" if comparable else "")
    return [*cells, one.note]


def number(value):
    """Return a number with about three digits that count."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= SMALL * SMALL:
        return f"{value:,.0f}"
    if size >= SMALL:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= TINY else f"{value:.3g}"


def table_of(heads, rows):
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def cell(value):
    return " ".join(str(value).split()).replace("|", "\\|")
