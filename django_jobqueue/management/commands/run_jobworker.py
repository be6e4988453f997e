"""`manage.py run_jobworker`: options in, one worker, an exit code out."""

import argparse
import os
import sys
import traceback
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from django_jobqueue.conf import settings
from django_jobqueue.exceptions import InvalidSettings, SetupError
from django_jobqueue.worker import Pool
from django_jobqueue.worker.control import Ended, run_until_stopped
from django_jobqueue.worker.drain import leftovers
from django_jobqueue.worker.pool import PoolEvent
from django_jobqueue.worker.preflight import preflight


class Command(BaseCommand):
    """Runs jobs until it is told to stop."""

    help = "Run a worker: claim jobs from the database and run their handlers."
    requires_system_checks = ()  # The preflight runs ours, a line for each.

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--concurrency", type=int, metavar="N", help="jobs to run at once (WORKER_CONCURRENCY)"
        )
        parser.add_argument("--queues", type=names, metavar="A,B", help="claim from these only")
        parser.add_argument("--types", type=names, metavar="A,B", help="claim these types only")
        parser.add_argument(
            "--drain", action="store_true", help="exit when no job is left to do, retries included"
        )
        parser.add_argument(
            "--max-jobs", type=positive, metavar="N", help="exit after claiming that many jobs"
        )
        parser.add_argument("--database", metavar="ALIAS", help="the database of the jobs table")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a process of its own, which ends at once, whatever threads remain."""
        code = 0
        try:
            super().run_from_argv(argv)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except KeyboardInterrupt:  # Before the worker listens to signals.
            code = 130
        except BaseException:  # noqa: BLE001 (printed as Python would)
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run one worker to its end; CommandError when it cannot start or lost a thread."""
        try:
            preflight(options["database"], options["types"], options["queues"])
            grace = settings.SHUTDOWN_GRACE
            pool = Pool(
                options["concurrency"],
                types=options["types"],
                queues=options["queues"],
                using=options["database"],
                drain=options["drain"],
                max_jobs=options["max_jobs"],
            )
        except (SetupError, InvalidSettings) as error:
            raise CommandError(str(error)) from error

        self.say(started(pool))
        ended = run_until_stopped(pool, grace)
        self.say(summary(pool, ended))
        if ended.cause is PoolEvent.DRAINED:
            self.say(left_over(pool))
        if ended.died:
            raise CommandError(f"Threads of the worker died: {', '.join(ended.died)}.")

    def say(self, line: str) -> None:
        """Print one line and show it at once, even through a pipe."""
        self.stdout.write(line)
        self.stdout.flush()


def names(value: str) -> tuple[str, ...]:
    """Split an option's value at its commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def positive(value: str) -> int:
    """Read a whole number of 1 or more."""
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"{value!r}: expected a whole number, 1 or more")
    return int(value)


def started(pool: Pool) -> str:
    """Say what kind of worker began."""
    queues = pool.eligibility.queues
    types = pool.eligibility.terms().leases
    return (
        f"Worker {pool.name} started: {max(pool.concurrency, 0)} slots, "
        f"{'all queues' if queues is None else 'queues ' + ', '.join(queues)}, "
        f"{len(types)} job types, database {pool.manager.write_alias}."
    )


def summary(pool: Pool, ended: Ended) -> str:
    """Say why the worker ended and what it did."""
    counts = {outcome.value: count for outcome, count in pool.outcomes.items()}
    if ended.released:
        counts["handed back"] = ended.released
    done = ", ".join(f"{count} {what}" for what, count in counts.items()) or "no jobs"
    return f"Worker {pool.name} stopped ({ended.cause.value}): {done}."


def left_over(pool: Pool) -> str:
    """Say which active jobs a drained worker leaves, and why."""
    try:
        counts = leftovers(pool.manager, pool.eligibility)
    except DatabaseError as error:
        return f"Left: unknown, the database did not answer ({error})."
    if not counts:
        return "Left: nothing."
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return f"Left: {sum(counts.values())} ({reasons})."
