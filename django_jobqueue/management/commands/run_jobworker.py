"""`manage.py run_jobworker`: options in, one worker, an exit code out."""

import argparse
import sys
import traceback
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from django_jobqueue.conf import MOST_SLOTS, settings
from django_jobqueue.exceptions import InvalidSettings, SetupError
from django_jobqueue.states import WorkerMode
from django_jobqueue.worker.leaving import leave
from django_jobqueue.worker.options import ExitCode, WorkerOptions
from django_jobqueue.worker.preflight import preflight
from django_jobqueue.worker.process import make_pool, run_worker
from django_jobqueue.worker.streams import open_closed_streams
from django_jobqueue.worker.supervisor import Supervisor


class Command(BaseCommand):
    """Runs jobs until it is told to stop."""

    help = "Run a worker: claim jobs from the database and run their handlers."
    requires_system_checks = ()  # The preflight runs ours, a line for each.

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--concurrency",
            type=slots,
            metavar="N",
            help="jobs to run at once (WORKER_CONCURRENCY)",
        )
        parser.add_argument(
            "--processes", type=positive, metavar="P", help="worker processes, each of N slots"
        )
        parser.add_argument(
            "--mode",
            type=mode,
            metavar="all|system|off",
            help="fix the worker mode (WORKER_MODE)",
        )
        parser.add_argument("--queues", type=names, metavar="A,B", help="claim from these only")
        parser.add_argument("--types", type=names, metavar="A,B", help="claim these types only")
        parser.add_argument(
            "--drain", action="store_true", help="exit when no job is left to do, retries included"
        )
        parser.add_argument(
            "--max-jobs", type=positive, metavar="N", help="end a process after so many jobs"
        )
        parser.add_argument(
            "--max-memory", type=positive, metavar="MIB", help="end a process that has grown so far"
        )
        parser.add_argument("--database", metavar="ALIAS", help="the database of the jobs table")
        parser.add_argument(
            "--health-file",
            metavar="PATH",
            help="keep this file fresh while the worker is alive (HEALTH_FILE)",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a process of its own, which ends at once, whatever threads remain."""
        code = 0
        open_closed_streams()
        self.stdout, self.stderr = OutputWrapper(sys.stdout), OutputWrapper(sys.stderr)
        try:
            super().run_from_argv(argv)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except KeyboardInterrupt:  # Before the worker listens to signals.
            code = 130
        except BaseException:  # noqa: BLE001 (printed as Python would)
            traceback.print_exc()
            code = 1
        leave(code)

    def handle(self, *_args: Any, **arguments: Any) -> None:
        """Run a worker, or a supervisor with several, to the end; CommandError if that fails."""
        options = WorkerOptions(
            **{field.name: arguments[field.name] for field in fields(WorkerOptions)}
        )
        try:
            preflight(options.database, options.types, options.queues, options.health_file)
            if options.health_file is None:
                options = replace(options, health_file=settings.HEALTH_FILE)
            if (arguments["processes"] or 1) > 1:
                self.supervise(arguments["processes"], options)
                return
            ended = run_worker(make_pool(options), self.say, health_file=options.health_file)
        except (SetupError, InvalidSettings) as error:
            raise CommandError(str(error)) from error
        if ended.died:
            raise CommandError(f"Threads of the worker died: {', '.join(ended.died)}.")

    def supervise(self, processes: int, options: WorkerOptions) -> None:
        """Run several workers until they are told to stop."""
        if Supervisor(processes, options, settings.SHUTDOWN_GRACE).run() != ExitCode.CLEAN:
            raise CommandError("A worker process ended badly; its own messages say how.")

    def say(self, line: str) -> None:
        """Print one line and show it at once, even through a pipe."""
        with suppress(OSError):  # A full disk ends no worker.
            self.stdout.write(line)
            self.stdout.flush()


def names(value: str) -> tuple[str, ...]:
    """Split an option's value at its commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def mode(value: str) -> WorkerMode:
    """Read a worker mode."""
    if value not in WorkerMode.values:
        raise argparse.ArgumentTypeError(f"{value!r}: expected {', '.join(WorkerMode.values)}")
    return WorkerMode(value)


def slots(value: str) -> int:
    """Read a number of slots."""
    try:
        number = int(value)
    except ValueError:
        number = MOST_SLOTS + 1
    if number > MOST_SLOTS:
        raise argparse.ArgumentTypeError(
            f"{value!r}: expected a whole number, at most {MOST_SLOTS}"
        )
    return number


def positive(value: str) -> int:
    """Read a whole number of 1 or more."""
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"{value!r}: expected a whole number, 1 or more")
    return int(value)
