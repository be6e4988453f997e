"""`manage.py jobqueue`: what the admin shows and does, for people without the admin."""

import argparse
import os
import shutil
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from django_jobqueue.commandline import WORDS
from django_jobqueue.commandline.printing import Printer
from django_jobqueue.commandline.word import Context, Misused, Refused
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import Job
from django_jobqueue.worker.preflight import first_line

USAGE = 2


class Command(BaseCommand):
    """Looks at the queue and acts on it."""

    help = "Look at the job queue, and act on it."
    requires_system_checks = ()  # Somebody is in a hurry; the worker and `check` run them.

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare a parser for each word."""
        words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
        for word in WORDS:
            one = words.add_parser(word.name, help=word.help, description=word.help)
            word.declare(one)
            one.add_argument("--database", metavar="ALIAS", help="the database of the jobs table")
            one.add_argument("--format", choices=("text", "json"), default="text")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a program, whose reader may leave before the end: `jobqueue list | head`."""
        try:
            super().run_from_argv(argv)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still in the buffer is for nobody, and must not fail at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def handle(self, *_args: Any, **arguments: Any) -> None:
        """Run one word; CommandError with what it said when it did nothing."""
        word = next(word for word in WORDS if word.name == arguments["word"])
        using = arguments["database"]
        if using is not None and using not in connections:
            known = ", ".join(sorted(connections))
            raise CommandError(f'--database "{using}" is not in DATABASES. Known are: {known}.')
        manager = Job.objects.db_manager(using or Job.objects.write_alias)
        printer = Printer(
            self.stdout,  # type: ignore[arg-type]
            as_json=arguments["format"] == "json",
            width=shutil.get_terminal_size().columns if self.stdout.isatty() else None,
        )
        try:
            word.run(Context(manager, printer, input), arguments)
        except Misused as error:
            message = f"{error} See: manage.py jobqueue {word.name} --help"
            raise CommandError(message, returncode=USAGE) from error
        except (Refused, JobQueueError) as error:
            raise CommandError(str(error)) from error
        except (DatabaseError, UnicodeError) as error:
            raise CommandError(
                f'The database "{manager.write_alias}" did not do that: {first_line(error)}.'
            ) from error
