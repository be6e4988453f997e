"""`manage.py jobqueue`: what the admin shows and does, for people without the admin."""

import argparse
import shutil
from copy import copy
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connections

from django_jobqueue.commandline import WORDS
from django_jobqueue.commandline.printing import Printer
from django_jobqueue.commandline.word import Context, Misused, Refused
from django_jobqueue.exceptions import JobQueueError, SetupError
from django_jobqueue.management.output import ProgramCommand
from django_jobqueue.models import Job
from django_jobqueue.worker.preflight import check_connection, check_migrations, first_line

USAGE = 2


class Command(ProgramCommand):
    """Looks at the queue and acts on it."""

    help = "Look at the job queue, and act on it."
    requires_system_checks = ()  # Somebody is in a hurry; the worker and `check` run them.

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare a parser for each word."""
        of_django = after_the_word(parser)
        words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
        for word in WORDS:
            one = words.add_parser(
                word.name, help=word.help, description=word.help, parents=[of_django]
            )
            word.declare(one)
            one.add_argument("--database", metavar="ALIAS", help="the database of the jobs table")
            one.add_argument("--format", choices=("text", "json"), default="text")

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
            word.run(Context(manager, printer, self.ask), arguments)
        except Misused as error:
            message = f"{error} See: manage.py jobqueue {word.name} --help"
            raise CommandError(message, returncode=USAGE) from error
        except (Refused, JobQueueError) as error:
            raise CommandError(str(error)) from error
        except (DatabaseError, UnicodeError) as error:
            raise CommandError(trouble(manager.write_alias, error)) from error


def trouble(alias: str, error: Exception) -> str:
    """Return why a database did not do something, with the remedy where one is known."""
    connection = connections[alias]
    if isinstance(error, DatabaseError) and not connection.in_atomic_block:
        connection.close()  # A connection that was lost looks open.
        try:
            check_connection(connection)
            check_migrations(connection)
        except SetupError as found:
            return str(found)
        except DatabaseError as later:
            error = later
    return f'The database "{alias}" did not do that: {first_line(error)}.'


def after_the_word(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return a parent that takes the options of `parser` once more.

    It has no defaults: they would undo what was given before the word.
    """
    again = argparse.ArgumentParser(add_help=False)
    for action in parser._actions:  # noqa: SLF001 (argparse has no other way)
        if action.dest != "help":
            action = copy(action)  # noqa: PLW2901 (its default is to change here only)
            action.default = argparse.SUPPRESS
            again._add_action(action)  # noqa: SLF001 (neither for this)
    return again
