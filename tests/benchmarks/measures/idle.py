"""What a worker costs that has nothing to do."""

import contextlib
import os
from pathlib import Path

import psycopg

from tests.benchmarks.processes import pause
from tests.benchmarks.results import Reach, Series, Table

TITLE = "Idle worker"
EXPLANATION = """\
A worker with default settings and 16 slots, and one with the default number of slots, each on a
database of its own without jobs. Transactions are the server's own count for that database;
outside of a transaction every statement is one. CPU time is the whole process's.\
"""
SLOTS = (16, 2)
MOST_STATEMENTS = 1.0
MOST_CPU = 0.5
# The server counts an idle session's last transactions up to ten seconds late, both times alike.
WARM_UP_SECONDS = 12


def run(bench):
    seconds = bench.scale(60, 8)
    found = []
    for number in range(bench.runs):
        bench.log(f"idle: run {number + 1}, {seconds} s")
        found.append(one_run(bench, seconds))
    series = []
    for place, slots in enumerate(SLOTS):
        statements, shares = zip(*(pairs[place] for pairs in found), strict=True)
        series.append(Series(f"{slots} slots: transactions", "1/s", list(statements)))
        series.append(Series(f"{slots} slots: CPU", "% of a core", list(shares)))
    statements, share = series[-2].median, series[-1].median  # At default settings.
    return Table(
        TITLE,
        EXPLANATION,
        series,
        [
            Reach(
                f"default settings: ≤ {MOST_STATEMENTS:g} statement a second",
                statements <= MOST_STATEMENTS,
                f"{statements:.2f} a second",
            ),
            Reach(
                f"default settings: ≤ {MOST_CPU} % of a core",
                share <= MOST_CPU,
                f"{share:.2f} %",
            ),
        ],
    )


def one_run(bench, seconds):
    """Return transactions a second and CPU share for each number of slots, all at once."""
    with contextlib.ExitStack() as stack:
        # Asked from another database, so that asking is not counted.
        asker = stack.enter_context(psycopg.connect(bench.url, autocommit=True))
        pairs = []
        for slots in SLOTS:
            database = stack.enter_context(bench.database("idle"))
            worker = stack.enter_context(bench.worker(database, slots=slots))
            pairs.append((database, worker))

        def totals():
            return [(transactions(asker, db), cpu_seconds(worker.pid)) for db, worker in pairs]

        pause(bench.scale(WARM_UP_SECONDS, 2))
        before = totals()
        pause(seconds)
        return [
            ((count - count_before) / seconds, (cpu - cpu_before) / seconds * 100)
            for (count_before, cpu_before), (count, cpu) in zip(before, totals(), strict=True)
        ]


def transactions(connection, database):
    """Return how many transactions the server counted in the database."""
    sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"
    return connection.execute(sql, (database.name,)).fetchone()[0]


def cpu_seconds(pid):
    """Return the processor time of a process: all its threads, in and outside of the kernel."""
    # The name of the program, in brackets, may hold spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")
