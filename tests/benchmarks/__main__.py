"""`python -m tests.benchmarks`: make the environment, measure, write the report."""

import argparse
import signal
import sys
import traceback
from pathlib import Path

from tests.benchmarks import environment


def main():
    arguments = parser().parse_args()
    if not environment.is_inside():
        given = [*sys.argv[1:], f"--output={arguments.output.resolve()}"]
        environment.enter(given, peers=arguments.peers, python=arguments.python)
    # So that databases and processes are cleared away then too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return measure(arguments)


def parser():
    made = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    made.add_argument(
        "--quick",
        action="store_true",
        help="one short run of everything, to see that it works; its numbers mean nothing",
    )
    made.add_argument("--only", type=names, metavar="A,B", help="these measures only")
    made.add_argument("--runs", type=int, metavar="N", help="runs of each figure (5)")
    made.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=environment.CACHE / "results",
        help="where the report goes (.cache/benchmarks/results)",
    )
    made.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to install and measure other queues too",
    )
    made.add_argument(
        "--python", metavar="PROGRAM", help="the interpreter to measure with (3.12 or newer)"
    )
    return made


def names(value):
    return [name.strip() for name in value.split(",") if name.strip()]


def measure(arguments):
    """Run the measures; return 0 if everything of this project could be measured."""
    from tests.benchmarks import machine, measures, report, services
    from tests.benchmarks.bench import Bench
    from tests.benchmarks.results import Table

    try:
        chosen = measures.chosen(arguments.only)
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from None
    tables = []
    with (
        services.postgresql() as url,
        Bench(quick=arguments.quick, runs=arguments.runs, peers=arguments.peers, url=url) as bench,
    ):
        about = machine.described(bench)
        for name, module in chosen:
            bench.log(f"{module.TITLE} …")
            try:
                tables.append(module.run(bench))
            except Exception as error:  # noqa: BLE001 (the other measures go on)
                traceback.print_exc()
                failed = f"{name} failed: {type(error).__name__}"
                tables.append(Table(module.TITLE, "", [], [], errors=[failed]))
            path = report.write(arguments.output, about, tables)
        bench.log("done")
    print(f"\n{path.read_text()}\nWritten to {shown(arguments.output)}.")
    return 1 if any(table.errors for table in tables) else 0


def shown(path):
    """Return a path for people: relative where that is shorter."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main())
