"""How many no-op jobs a second a worker runs, for this project, its bare statements and peers.

The same for every system: the jobs are enqueued first; then its own worker command starts; the
handlers write a stamp after every k-th job, and the rate is taken between 10 % and 90 % of the
jobs; at the end the system's own state must say that every job ended well. Each run does every
system once, so that a machine that gets slower does so for all.
"""

import contextlib
import math
import subprocess

import psycopg

from tests.benchmarks import stamps
from tests.benchmarks.processes import Failed, pause, start
from tests.benchmarks.results import Chart, Reach, Series, Table
from tests.benchmarks.systems import (
    bare,
    celery_redis,
    contenders,
    jobqueue,
    ox,
    pgqueuer_batch,
    procrastinate_async,
    tasks_db,
)

TITLE = "Throughput"
EXPLANATION = """
No-op jobs a second. The jobs are enqueued before the system's own worker starts; its handlers
write a stamp after every k-th job, and the rate is taken between 10 % and 90 % of the jobs, so
that neither start nor end counts. Then the system's own state must say that every job ended well.
Each run does every system once. Bare: the statement that settles a batch and claims the next, with
the worker's own text and parameters, sent by a plain loop that reads the outcomes and the rows.
"""
UNIT = "jobs/s"
STAMPS = 500
LEAST_SECONDS = 5
AIM_SECONDS = 6.5
QUICK_SECONDS = 0.6
TRIES = 3
LEAST_JOBS = 100
PATIENCE_SECONDS = 180
FAILURES = (Failed, psycopg.Error, subprocess.SubprocessError, OSError, ValueError)
PEERS_IN_THE_DATABASE = (tasks_db, ox, procrastinate_async)


def run(bench):
    lanes = [Lane(contender) for contender in contenders(quick=bench.quick, peers=bench.peers)]
    for number in range(1, bench.runs + 1):
        for lane in lanes:
            if not lane.problem:
                lane.run(bench, number)
    series = [lane.series() for lane in lanes]
    return Table(
        TITLE,
        " ".join(EXPLANATION.split()),
        series,
        reaches(series),
        charts(series),
        base=jobqueue.name_of(16),
        errors=[f"{s.name}: {s.note}" for s in series if not s.runs and is_ours(s.name)],
    )


def is_ours(name):
    return name in {c.name for module in (jobqueue, bare) for c in module.CONTENDERS}


class Lane:
    """One contender with what was measured of it so far."""

    def __init__(self, contender):
        self.contender = contender
        self.rates = []
        self.total = None
        self.problem = contender.why_not()

    def run(self, bench, number):
        """Measure once more; what fails is noted and not tried again."""
        try:
            self.total = self.total or jobs_for(bench, self.contender.expected)
            rate = measure(bench, self.contender, self.total)
            if not self.rates and not bench.quick:
                rate = self.lengthen(bench, rate)
        except FAILURES as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            self.problem = f"failed in run {number}"
            bench.log(f"run {number}: {self.contender.name}: failed: " + "\n    ".join(lines))
        else:
            self.rates.append(rate)
            bench.log(f"run {number}: {self.contender.name}: {rate:,.0f} {UNIT}")

    def lengthen(self, bench, rate):
        """Measure with more jobs until a run is long enough; all later runs have as many."""
        for _ in range(TRIES):
            lasted = self.total / rate
            if lasted >= LEAST_SECONDS:
                break
            bench.log(f"{self.contender.name}: only {lasted:.1f} s; again with more jobs")
            self.total = jobs_for(bench, rate)
            rate = measure(bench, self.contender, self.total)
        return rate

    def series(self):
        if not self.rates:
            return Series(self.contender.name, UNIT, [], f"not measured: {self.problem}")
        notes = [self.contender.how, f"{self.total:,} jobs a run", self.problem]
        return Series(self.contender.name, UNIT, self.rates, "; ".join(filter(None, notes)))


def jobs_for(bench, rate):
    """Return how many jobs make a run that is long enough."""
    return max(math.ceil(rate * bench.scale(AIM_SECONDS, QUICK_SECONDS)), LEAST_JOBS)


def measure(bench, contender, total):
    """Let the system work off `total` jobs, and return its rate."""
    every = max(total // STAMPS, 1)
    with bench.database(contender.label, contender.schema) as database:
        try:
            contender.fill(database, total)
            come_to_rest(database)
            folder = bench.new_folder("stamps")
            environ = contender.environ(database.url) | {
                stamps.FOLDER: str(folder),
                stamps.EVERY: str(every),
            }
            with contextlib.ExitStack() as stack:
                workers = [
                    stack.enter_context(start(command, environ, bench.new_folder("worker")))
                    for command in contender.commands
                ]
                wait_for_stamps(workers, folder, every, total)
                wait_for_the_end(workers, contender, database)
            return stamps.rate(stamps.times_of(folder), every, total)
        finally:
            contender.clean(database)


def come_to_rest(database):
    """Give every system fresh statistics, and do now what the server owes for the inserts."""
    with database.connect() as connection:
        connection.execute("VACUUM ANALYZE")
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute("CHECKPOINT")


def wait_for_stamps(workers, folder, every, total):
    """Wait until nearly all jobs have a stamp. The database is left alone meanwhile."""
    almost = 0.95 * total / every

    def ended():
        for worker in workers[1:]:
            worker.check()
        return len(stamps.times_of(folder)) >= almost

    workers[0].wait_until(ended, f"{total} jobs", PATIENCE_SECONDS)


def wait_for_the_end(workers, contender, database):
    def ended():
        pause(0.1)
        return contender.remaining(database) == 0

    workers[0].wait_until(ended, "end of all jobs", PATIENCE_SECONDS)


def reaches(series):
    by_name = {one.name: one for one in series if one.runs}
    names = [c.name for module in PEERS_IN_THE_DATABASE for c in module.CONTENDERS]
    best = max((by_name[n] for n in names if n in by_name), key=lambda s: s.median, default=None)
    one, sixteen, sixty_four = (by_name.get(jobqueue.name_of(slots)) for slots in (1, 16, 64))

    def peer(name):
        return by_name.get(name)

    return [
        ratio(
            "One process, 16 slots: at least 8 times the best of django-tasks-db, django-ox and "
            "Procrastinate",
            sixteen,
            best,
            8,
        ),
        ratio("… at least 5 times Celery over Redis", sixteen, peer(celery_redis.NAME), 5),
        ratio("… at least 60 % of its statements bare", sixteen, peer(bare.name_of(16)), 0.6),
        ratio("64 slots: at least PgQueuer", sixty_four, peer(pgqueuer_batch.NAME), 1),
        ratio("1 slot: at least 85 % of its statements bare", one, peer(bare.name_of(1)), 0.85),
        ratio(
            "Two processes of 16 slots: not below one",
            by_name.get(jobqueue.name_of(16, 2)),
            sixteen,
            1,
        ),
    ]


def ratio(text, ours, theirs, least):
    """Judge whether our median is at least so many times theirs."""
    if ours is None or theirs is None:
        return Reach(text, None, "not measured")
    times = ours.median / theirs.median
    shown = f"{times:.2f} times ({ours.median:,.0f} against {theirs.median:,.0f}, {theirs.name})"
    return Reach(text, times >= least, shown)


def charts(series):
    measured = {one.name: one for one in series if one.runs}
    bars = sorted(measured.values(), key=lambda one: one.median)
    slots = list(jobqueue.SLOTS)
    lines = {
        "worker, one process": [measured.get(jobqueue.name_of(n)) for n in slots],
        "its statements bare": [measured.get(bare.name_of(n)) for n in slots],
    }
    return [
        Chart(
            name="throughput-systems",
            title="No-op jobs a second",
            kind="bars",
            x=[one.name for one in bars],
            x_label="",
            y_label=UNIT,
            values={"median": [one.median for one in bars]},
            spans={"median": [(one.low, one.high) for one in bars]},
        ),
        Chart(
            name="throughput-slots",
            title="No-op jobs a second, by slots",
            kind="lines",
            x=slots,
            x_label="slots, or jobs in a batch",
            y_label=UNIT,
            values={k: [one and one.median for one in v] for k, v in lines.items()},
            spans={k: [one and (one.low, one.high) for one in v] for k, v in lines.items()},
        ),
    ]
