"""Jobs that appear behind the place where workers look: committed late, or with an old id."""

from tests.benchmarks import percentiles, programs, stamps
from tests.benchmarks.processes import pause
from tests.benchmarks.results import Reach, Series, Table

TITLE = "Late and skewed rows"
RATE = 300
SKEWED_RATE = 30
BEHIND_SECONDS = 600
MOST_SECONDS = 2.0
LEAST_SHARE = 0.98
EXPLANATION = f"""\
Under a steady stream of {RATE} jobs a second, 5,000 jobs are inserted by a transaction that stays
open for 10 s, and another producer, whose clock is {BEHIND_SECONDS // 60} minutes behind, enqueues
{SKEWED_RATE} jobs a second. Counted is the time from the commit (for single jobs: from the call of
`enqueue`) to the first line of the handler. One worker, 16 slots. The stream's rate is that of its
jobs' starts, as a share of the rate asked for.\
"""
SKEWED, LATE, STREAM = "skewed", "late", "stream"


def run(bench):
    waits = {LATE: [], SKEWED: [], STREAM: []}
    rates = []
    for number in range(bench.runs):
        bench.log(f"late_rows: run {number + 1}")
        found, share = one_run(bench)
        rates.append(share)
        for kind, seconds in found.items():
            waits[kind].append(seconds)
    series = []
    for kind, runs in waits.items():
        series.append(Series(f"{kind}: p99", "s", [percentiles.of(run, 99) for run in runs]))
        series.append(Series(f"{kind}: most", "s", [max(run) for run in runs]))
    series.append(Series("the stream's rate", "% of asked", [rate * 100 for rate in rates]))
    most = {one.name: one.median for one in series}
    reaches = [
        Reach(
            f"{kind} rows: all start within {MOST_SECONDS:g} s",
            most[f"{kind}: most"] <= MOST_SECONDS,
            f"{most[f'{kind}: most']:.2f} s",
        )
        for kind in (LATE, SKEWED)
    ]
    share = series[-1].median
    reaches.append(Reach("the stream keeps its rate", share >= LEAST_SHARE * 100, f"{share:.1f} %"))
    return Table(TITLE, EXPLANATION, series, reaches)


def one_run(bench):
    """Return the seconds that each kind of job waited, and the stream's share of its rate."""
    seconds, held = bench.scale(30, 7), bench.scale(10, 2)
    folder = bench.new_folder("stamps")

    def stream(rate, **arguments):
        return programs.started(
            bench, database, "stream", rate=rate, job_type="bench.stamp", **arguments
        )

    with (
        bench.database("late_rows") as database,
        bench.worker(database, environ={stamps.FOLDER: str(folder)}) as worker,
        stream(RATE, seconds=seconds) as steady,
        stream(SKEWED_RATE, seconds=seconds - 1, behind=BEHIND_SECONDS) as skewed,
    ):
        pause(bench.scale(4, 1))
        late = programs.answer_of(
            bench,
            database,
            "held_insert",
            count=bench.scale(5_000, 500),
            seconds=held,
            job_type="bench.stamp",
            mark=LATE,
        )
        answers = [programs.answer(process) for process in (steady, skewed)]
        total = sum(answer["sent"] for answer in answers) + late["count"]
        worker.wait_until(lambda: len(stamps.lines_of(folder)) >= total, f"{total} jobs run")
    return sorted_out(stamps.lines_of(folder), late["committed_at"])


def sorted_out(lines, committed_at):
    """Return what `one_run` does, from the stamps."""
    waits = {LATE: [], SKEWED: [], STREAM: []}
    starts = []
    for started, mark, job_id in map(str.split, lines):
        if mark == LATE:
            waits[LATE].append(float(started) - committed_at)
        else:
            kind = SKEWED if is_behind(job_id, float(mark)) else STREAM
            waits[kind].append(float(started) - float(mark))
            if kind == STREAM:
                starts.append(float(started))
    took = max(starts) - min(starts)
    return waits, (len(starts) - 1) / took / RATE


def is_behind(job_id, sent_at):
    """Whether the time in a UUIDv7 is long before the job was sent."""
    made_at = int(job_id.replace("-", "")[:12], 16) / 1000
    return made_at < sent_at - BEHIND_SECONDS / 2
