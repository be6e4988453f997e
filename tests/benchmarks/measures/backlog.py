"""What a claim costs when there is much in the table that is not to be claimed now."""

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from tests.benchmarks import extras, percentiles, programs, rows, stamps
from tests.benchmarks.processes import pause
from tests.benchmarks.results import Chart, Reach, Series, Table

TITLE = "Backlogs"
SIZE = 16
EXPLANATION = f"""\
Jobs of this worker wait behind a backlog. First a process claims {SIZE} at a time through the
manager, as the worker's exchange does, and settles them in between; only the claims are timed, and
then statements that settle and claim at once. Claims without memory are those of a process that
keeps no hints from one to the next. Then a worker with {SIZE} slots takes no-op jobs behind the
same backlog: its rate in the middle, and the time of its own claims as its exchange sees them,
which includes waiting for the interpreter.\
"""
MOST_MS = 10.0
MOST_RATIO = 2.0
# Where claims are very slow there are fewer of them.
WAYS = 3
WAY_SECONDS = 10.0
DRAIN_SECONDS = 60.0
EMPTY = "nothing else"
ALL = "all together"
QUEUES = tuple(f"queue_{number:02}" for number in range(100))
TYPES = extras.type_names(50)
FOREIGN_TYPES = tuple(f"elsewhere.type_{number:02}" for number in range(50))


@dataclass(frozen=True)
class Case:
    """A backlog, and over how many types and queues the jobs are spread that can be claimed."""

    name: str
    foreign: bool = False
    scheduled: bool = False
    finished: bool = False
    types: bool = False
    queues: bool = False


# The table of the last but one is used again for the last.
CASES = (
    Case(EMPTY),
    Case("50 types", types=True),
    Case("100 queues", queues=True),
    Case("1,000,000 rows of unregistered types", foreign=True),
    Case("300,000 scheduled for tomorrow", scheduled=True),
    Case("10,000,000 finished rows", finished=True),
    Case(ALL, foreign=True, scheduled=True, finished=True, types=True, queues=True),
)


@dataclass
class Found:
    """The figures of one case, one of each a run."""

    p50: list
    p95: list
    fused_p95: list
    forgetful_p95: list
    worker_p95: list
    rate: list


def run(bench):
    found = {}
    with bench.database("backlog") as database, database.connect() as connection:
        made = None
        for case in CASES:
            bench.log(f"backlog: {case.name}")
            made = prepare(bench, connection, case, made)
            found[case.name] = Found([], [], [], [], [], [])
            for _ in range(bench.runs):
                claim_directly(bench, database, connection, case, found[case.name])
                drain(bench, database, connection, case, found[case.name])
    return table(found)


def prepare(bench, connection, case, made):
    """Put the case's backlog into the table, which holds that of `made`; return the case."""
    keeps = made is not None and made.finished and case.finished
    if not keeps:
        rows.empty(connection)
    for backlog in backlogs(bench, replace(case, finished=case.finished and not keeps)):
        rows.fill(connection, backlog)
    rows.settle_down(connection)
    return case


def backlogs(bench, case):
    """Return the rows that are in the way: all older than those to claim."""
    queues = QUEUES if case.queues else ("default",)
    own, foreign = (TYPES, FOREIGN_TYPES) if case.types else (("bench.noop",), FOREIGN_TYPES[:1])
    if case.finished:
        yield rows.Rows(
            bench.scale(10_000_000, 100_000),
            own,
            queues,
            finished=True,
            age=timedelta(days=1),
            span=timedelta(days=20),
        )
    if case.foreign:
        count = bench.scale(1_000_000, 10_000)
        yield rows.Rows(count, foreign, queues, age=timedelta(hours=2), span=timedelta(hours=1))
    if case.scheduled:
        count = bench.scale(300_000, 3_000)
        yield rows.Rows(count, own, queues, due_in=timedelta(days=1), age=timedelta(hours=1))


def claimable(case, count):
    """Return rows that the worker of the case can claim."""
    types = TYPES if case.types else ("bench.noop",)
    return rows.Rows(count, types, QUEUES if case.queues else ("default",))


def claim_directly(bench, database, connection, case, found):
    """Claim and settle one after the other from a process without a worker."""
    rounds = bench.scale(200, 30)
    rows.fill(connection, claimable(case, rounds * WAYS * SIZE))
    answer = programs.answer_of(
        bench,
        database,
        "claims",
        types=TYPES if case.types else ["bench.noop"],
        queues=QUEUES if case.queues else None,
        size=SIZE,
        rounds=rounds,
        seconds=WAY_SECONDS,
    )
    expected = sum(len(answer[way]) for way in ("apart", "fused", "forgetful")) * SIZE
    if answer["claimed"] != expected:
        raise AssertionError(f"{case.name}: {answer['claimed']} of {expected} jobs claimed")
    found.p50.append(percentiles.of(answer["apart"], 50))
    found.p95.append(percentiles.of(answer["apart"], 95))
    found.fused_p95.append(percentiles.of(answer["fused"], 95))
    found.forgetful_p95.append(percentiles.of(answer["forgetful"], 95))


def drain(bench, database, connection, case, found):
    """Let a worker take jobs behind the backlog."""
    count, every = bench.scale(10_000, 1_000), bench.scale(100, 20)
    folder = bench.new_folder("stamps")
    environ = {
        stamps.FOLDER: str(folder),
        stamps.EVERY: str(every),
        extras.CLAIM_TIMES: str(folder),
        extras.TYPES: str(len(TYPES) if case.types else 0),
    }
    options = [f"--queues={','.join(QUEUES)}"] if case.queues else []
    rows.fill(connection, claimable(case, count))
    with bench.worker(database, slots=SIZE, options=options, environ=environ) as worker:
        end = time.monotonic() + DRAIN_SECONDS
        while len(stamps.lines_of(folder)) < count // every and time.monotonic() < end:
            worker.check()
            pause(0.05)
    times = stamps.times_of(folder)
    found.rate.append(stamps.rate(times, every, min(len(times) * every, count)))
    found.worker_p95.append(percentiles.of(extras.claim_times(folder), 95))


def table(found):
    series = []
    for name, figures in found.items():
        series += [
            Series(f"{name}: claim p50", "ms", figures.p50),
            Series(f"{name}: claim p95", "ms", figures.p95),
            Series(f"{name}: settle and claim p95", "ms", figures.fused_p95),
            Series(f"{name}: claim p95 without memory", "ms", figures.forgetful_p95),
            Series(f"{name}: the worker's claims p95", "ms", figures.worker_p95),
            Series(f"{name}: worker", "jobs/s", figures.rate),
        ]
    by_name = {one.name: one for one in series}
    empty = by_name[f"{EMPTY}: claim p95"].median
    reaches = []
    for name in found:
        p95 = by_name[f"{name}: claim p95"].median
        reaches.append(
            Reach(
                f"{name}: claim p95 ≤ {MOST_MS:g} ms and ≤ {MOST_RATIO:g} times with nothing else",
                p95 <= MOST_MS and p95 <= MOST_RATIO * empty,
                f"{p95:.2f} ms, {p95 / empty:.2f} times",
            )
        )
    return Table(TITLE, EXPLANATION, series, reaches, charts(found, by_name))


def charts(found, by_name):
    def medians(figure):
        return [by_name[f"{name}: {figure}"].median for name in found]

    claims = {"claim p50": medians("claim p50"), "claim p95": medians("claim p95")}
    names = list(found)
    return [
        Chart("backlog-claims", "Claim behind a backlog", "bars", names, "", "ms", claims),
        Chart(
            "backlog-rate",
            "Worker behind a backlog",
            "bars",
            names,
            "",
            "jobs/s",
            {"16 slots": medians("worker")},
        ),
    ]
