"""How long a job waits when there is nothing to wait for."""

from tests.benchmarks import percentiles, programs, stamps
from tests.benchmarks.processes import pause
from tests.benchmarks.results import Chart, Reach, Series, Table

TITLE = "From enqueue to handler"
RATE = 100
EXPLANATION = f"""\
One process enqueues {RATE} jobs a second at planned times, each outside of a transaction, and a
worker with 16 slots and default settings runs them. Counted is the time from just before the call
of `enqueue` to the first line of the handler, so the insert is part of it.\
"""
PERCENTILES = (50, 95, 99)
MOST_MS = {50: 5, 99: 50}


def run(bench):
    seconds = bench.scale(30, 4)
    found = {percent: [] for percent in (*PERCENTILES, 100)}
    lateness = []
    for number in range(bench.runs):
        bench.log(f"latency: run {number + 1}, {seconds} s at {RATE} jobs/s")
        waits, answer = waits_of(bench, seconds)
        for percent, runs in found.items():
            runs.append(percentiles.of(waits, percent))
        lateness.append(answer["late_p99_ms"])
    series = [
        Series("most" if percent == 100 else f"p{percent}", "ms", runs)
        for percent, runs in found.items()
    ]
    series.append(Series("p99 of the producer's own lateness", "ms", lateness, "not counted above"))
    shown = series[: len(PERCENTILES)]
    medians = dict(zip(PERCENTILES, [one.median for one in shown], strict=True))
    reaches = [
        Reach(f"p{percent} ≤ {most} ms", medians[percent] <= most, f"{medians[percent]:.1f} ms")
        for percent, most in MOST_MS.items()
    ]
    chart = Chart(
        "latency",
        f"From enqueue to handler at {RATE} jobs/s",
        "bars",
        [one.name for one in shown],
        "",
        "ms",
        {"16 slots": [one.median for one in shown]},
        {"16 slots": [(one.low, one.high) for one in shown]},
    )
    return Table(TITLE, EXPLANATION, series, reaches, [chart])


def waits_of(bench, seconds):
    """Return the milliseconds each job waited, and what the producer says of itself."""
    folder = bench.new_folder("stamps")
    with (
        bench.database("latency") as database,
        bench.worker(database, environ={stamps.FOLDER: str(folder)}) as worker,
    ):
        pause(1)
        answer = programs.answer_of(
            bench, database, "stream", rate=RATE, seconds=seconds, job_type="bench.stamp"
        )
        worker.wait_until(
            lambda: len(stamps.lines_of(folder)) >= answer["sent"], f"{answer['sent']} jobs run"
        )
    lines = [line.split() for line in stamps.lines_of(folder)]
    return [(float(started) - float(sent)) * 1000 for started, sent, _ in lines], answer
