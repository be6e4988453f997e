"""What a transaction that stays open does to the queue."""

import contextlib
import time

from tests.benchmarks import extras, percentiles, programs, rows, stamps
from tests.benchmarks.processes import pause
from tests.benchmarks.results import Chart, Reach, Series, Table

TITLE = "Held snapshot"
RATE = 500
PRODUCERS = 2
EXPLANATION = f"""\
Before: a worker with 16 slots takes no-op jobs from a large backlog for 30 s. Then another session
opens a REPEATABLE READ transaction and reads, so that no row version that ends from here on can be
removed; {RATE} jobs a second are enqueued and run for 10 minutes. After: with the transaction
still open, the worker again takes jobs from a large backlog for 30 s. The claims are the worker's
own, as its exchange sees them. One run.\
"""
LEAST_SHARE = 80.0
MOST_MS = 25.0
EVERY = 10
PARTS = 10
SETTLING_SECONDS = 1.0
PATIENCE_SECONDS = 60


def run(bench):
    minutes = bench.scale(600, 5) / 60
    bench.log(f"snapshot: one run, {minutes:.1f} minutes at {RATE} jobs/s")
    folder = bench.new_folder("stamps")
    environ = {
        stamps.FOLDER: str(folder),
        stamps.EVERY: str(EVERY),
        extras.CLAIM_TIMES: str(folder),
    }
    with bench.database("snapshot") as database, database.connect() as connection:
        with bench.worker(database, environ=environ) as worker:
            before = capacity(bench, connection, worker, folder)
        rows.empty(connection)
        rows.settle_down(connection)
        with (
            held_snapshot(database),
            bench.worker(database, environ=environ) as worker,
        ):
            begin = len(stamps.times_of(folder))
            answers = stream(bench, database, minutes * 60)
            sent = sum(answer["sent"] for answer in answers)
            end = time.monotonic() + PATIENCE_SECONDS
            while len(stamps.times_of(folder)) - begin < sent // EVERY and time.monotonic() < end:
                worker.check()
                pause(0.2)
            times = stamps.times_of(folder)[begin:]
            left = sent - len(times) * EVERY
            claims = extras.claim_times(folder, after=times[0], before=times[-1])
            parts = claims_by_part(folder, times[0], times[-1])
            bench.log("snapshot: capacity after")
            after = capacity(bench, connection, worker, folder)
            drained = extras.claim_times(folder, after=stamps.times_of(folder)[-1] - 30)
    ran = (len(times) - 1) * EVERY / (times[-1] - times[0])
    return table(before, after, ran, left, claims, parts, drained, answers)


def stream(bench, database, seconds):
    """Have jobs enqueued at the rate, to the end; return what the producers say."""
    with contextlib.ExitStack() as stack:
        producers = [
            stack.enter_context(
                programs.started(
                    bench,
                    database,
                    "stream",
                    rate=RATE / PRODUCERS,
                    seconds=seconds,
                    job_type="bench.noop",
                )
            )
            for _ in range(PRODUCERS)
        ]
        return [programs.answer(producer, seconds * 2 + 60) for producer in producers]


@contextlib.contextmanager
def held_snapshot(database):
    """Keep a transaction open that sees the table as it is now."""
    with database.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM django_jobqueue_job")
        yield


def capacity(bench, connection, worker, folder):
    """Return how many jobs a second the worker takes from a large backlog."""
    seconds = bench.scale(30, 2)
    worker.check()
    rows.fill(connection, rows.Rows(seconds * 12_000))
    begin = len(stamps.times_of(folder))
    rows.wake_workers(connection)
    worker.wait_until(lambda: len(stamps.times_of(folder)) > begin, "first job of the backlog")
    pause(SETTLING_SECONDS)
    first = len(stamps.times_of(folder)) - 1
    pause(seconds)
    times = stamps.times_of(folder)[first:]
    if not rows.exists(connection, "status = 'pending'"):
        raise AssertionError("The backlog was too small: it ended before the time.")
    return (len(times) - 1) * EVERY / (times[-1] - times[0])


def claims_by_part(folder, begin, end):
    """Return the p95 of the claims in each of ten parts of the time, with the part's end."""
    length = (end - begin) / PARTS
    found = []
    for part in range(PARTS):
        after = begin + part * length
        times = extras.claim_times(folder, after=after, before=after + length)
        p95 = percentiles.of(times, 95) if times else None
        found.append((round((part + 1) * length / 60, 3), p95))
    return found


def table(before, after, ran, left, claims, parts, drained, answers):
    share = after / before * 100
    p95 = percentiles.of(claims, 95)
    lateness = max(answer["late_p99_ms"] for answer in answers)
    series = [
        Series("capacity before", "jobs/s", [before]),
        Series("capacity after", "jobs/s", [after]),
        Series("capacity after", "% of before", [share]),
        Series("claim p50 during the stream", "ms", [percentiles.of(claims, 50)]),
        Series("claim p95 during the stream", "ms", [p95]),
        Series(
            "claim p95 in its last tenth", "ms", [p95 for _, p95 in parts[-1:] if p95 is not None]
        ),
        Series("settle and claim p95 from the backlog after", "ms", [percentiles.of(drained, 95)]),
        Series("the stream's rate", "jobs/s", [ran]),
        Series(
            "jobs of the stream not run in time",
            "jobs",
            [left],
            f"{PATIENCE_SECONDS} s after its end, counted in tens",
        ),
        Series("p99 of the producers' own lateness", "ms", [lateness]),
    ]
    reaches = [
        Reach(
            f"drain capacity ≥ {LEAST_SHARE:g} % of before", share >= LEAST_SHARE, f"{share:.0f} %"
        ),
        Reach(f"claim p95 ≤ {MOST_MS:g} ms", p95 <= MOST_MS, f"{p95:.1f} ms"),
    ]
    chart = Chart(
        "snapshot",
        "Claims while a snapshot is held",
        "lines",
        [minutes for minutes, _ in parts],
        "minutes",
        "ms",
        {"claim p95": [p95 for _, p95 in parts]},
    )
    return Table(TITLE, EXPLANATION, series, reaches, [chart])
