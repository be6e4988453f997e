"""How much memory a worker takes, and whether it grows."""

import re
from pathlib import Path

from tests.benchmarks import rows
from tests.benchmarks.processes import pause
from tests.benchmarks.results import Chart, Reach, Series, Table

TITLE = "Memory"
EXPLANATION = """\
Resident memory of a worker process with 16 slots: started and idle, after the first half of
100,000 no-op jobs, and after all of them. Once as on a site, once with DEBUG on, where Django
keeps what was executed. The proportional size, which counts shared pages in part, is beside it.\
"""
MOST_MB = 80
MOST_GROWTH_MB = 2.0
MB = 1_000_000


def run(bench):
    half = bench.scale(50_000, 1_000)
    series, reaches, bars = [], [], {}
    for debug in (False, True):
        name = "DEBUG on" if debug else "DEBUG off"
        found = []
        for number in range(bench.runs):
            bench.log(f"memory: {name}, run {number + 1}, {2 * half:,} jobs")
            found.append(one_run(bench, half, debug=debug))
        idle, middle, end, shared = (list(column) for column in zip(*found, strict=True))
        growth = [after - before for before, after in zip(middle, end, strict=True)]
        series += [
            Series(f"{name}: idle", "MB", idle),
            Series(f"{name}: after half", "MB", middle),
            Series(f"{name}: after all", "MB", end),
            Series(f"{name}: after all, proportional", "MB", shared),
            Series(f"{name}: growth over the last half", "MB", growth),
        ]
        bars[name] = [one.median for one in series[-5:-2]]
        resident, grown = series[-3].median, series[-1].median
        reaches += [
            Reach(f"{name}: ≤ {MOST_MB} MB", resident <= MOST_MB, f"{resident:.1f} MB"),
            Reach(
                f"{name}: ≤ {MOST_GROWTH_MB:g} MB growth over the last half",
                grown <= MOST_GROWTH_MB,
                f"{grown:.2f} MB",
            ),
        ]
    stages = ["idle", f"after {half:,} jobs", f"after {2 * half:,} jobs"]
    chart = Chart("memory", "Resident memory of a worker", "bars", stages, "", "MB", bars)
    return Table(TITLE, EXPLANATION, series, reaches, [chart])


def one_run(bench, half, *, debug):
    """Return the megabytes at the start, in the middle and at the end, and the last shared out."""
    with (
        bench.database("memory") as database,
        bench.worker(database, debug=debug) as worker,
        database.connect() as connection,
    ):
        sizes = [size(worker.pid)]
        for _ in range(2):
            rows.fill(connection, rows.Rows(half))
            rows.wake_workers(connection)
            while rows.exists(connection, "status IN ('pending', 'running')"):
                worker.check()
                pause(0.2)
            pause(1)  # Whatever is let go after the last job.
            sizes.append(size(worker.pid))
    return [*(resident for resident, _ in sizes), sizes[-1][1]]


def size(pid):
    """Return the resident and the proportional size of a process, in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kb = dict(re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE))
    return tuple(int(kb[name]) * 1024 / MB for name in ("Rss", "Pss"))
