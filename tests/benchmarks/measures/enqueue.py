"""What an enqueue costs."""

import statistics

from tests.benchmarks import programs
from tests.benchmarks.results import Reach, Series, Table

TITLE = "Enqueue"
EXPLANATION = """\
`Job.objects.enqueue` beside `Job(...).save(force_insert=True)` of the same row, in turn, on one
connection. Each run compares the medians of its calls. The wake-up is one NOTIFY after the commit.
`enqueue_many` inserts 10,000 jobs with one call. The ratio is also shown where a commit does not
wait for the disk (`synchronous_commit = off`): the disk hides part of the difference.\
"""
AT_ONCE = 10_000
MOST_RATIO = 1.3
LEAST_RATE = 20_000


def run(bench):
    figures = {}
    with bench.database("enqueue") as database:
        for number in range(bench.runs):
            bench.log(f"enqueue: run {number + 1}")
            for commit in ("on", "off"):
                for wake_up in (False, True):
                    many = commit == "on" and not wake_up
                    answer = programs.answer_of(
                        bench,
                        database,
                        "inserts",
                        settings={"NOTIFY": wake_up},
                        calls=bench.scale(2_000, 200),
                        at_once=AT_ONCE,
                        many=int(many),
                        synchronous_commit=commit,
                    )
                    note(figures, commit, wake_up, answer)
    return table(figures)


def note(figures, commit, wake_up, answer):
    """Add what one run of the program found."""
    enqueued = statistics.median(answer["enqueued"]) * 1000
    saved = statistics.median(answer["saved"]) * 1000
    name = f"enqueue {'with' if wake_up else 'without'} wake-up"
    ending = "" if commit == "on" else ", commit does not wait for the disk"
    figures.setdefault((f"{name}{ending}", "ms"), []).append(enqueued)
    if not wake_up:
        figures.setdefault((f"bare ORM insert{ending}", "ms"), []).append(saved)
    figures.setdefault((f"{name} / bare ORM insert{ending}", "ratio"), []).append(enqueued / saved)
    if answer["many"]:
        figures.setdefault(("enqueue_many of 10,000", "rows/s"), []).extend(answer["many"])


def table(figures):
    series = {name: Series(name, unit, runs) for (name, unit), runs in figures.items()}
    ratio = series["enqueue without wake-up / bare ORM insert"].median
    rate = series["enqueue_many of 10,000"].median
    return Table(
        TITLE,
        EXPLANATION,
        list(series.values()),
        [
            Reach(
                f"single, wake-up excluded: ≤ {MOST_RATIO} times a bare ORM insert",
                ratio <= MOST_RATIO,
                f"{ratio:.2f} times",
            ),
            Reach(
                f"enqueue_many of {AT_ONCE:,}: ≥ {LEAST_RATE:,} rows/s",
                rate >= LEAST_RATE,
                f"{rate:,.0f} rows/s",
            ),
        ],
    )
