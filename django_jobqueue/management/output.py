"""Commands that end well whatever becomes of their output."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from django_jobqueue.worker.streams import open_closed_streams


class Output(OutputWrapper):
    """A stream of this process that may take no more: a full disk, a reader that left.

    What is written to a reader that left goes nowhere; anything else raises CommandError.
    """

    def write(  # type: ignore[override]  # As Django's own, which is no stream to mypy.
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        """Write a line."""
        with self._kept_quiet():
            super().write(msg, style_func, ending)

    def flush(self) -> None:
        """Hand over what was written."""
        with self._kept_quiet():
            super().flush()

    @contextmanager
    def _kept_quiet(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What is still in the buffer is for nobody, and must not fail again at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(error, BrokenPipeError):
                raise CommandError(f"The output cannot be written: {error.strerror}.") from error


class ProgramCommand(BaseCommand):
    """A command whose output may go to a closed stream, a full disk or `head`.

    A closed stream and a reader that left are no failure; output that cannot be written is one.
    """

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a program."""
        open_closed_streams()
        self.stdout, self.stderr = Output(sys.stdout), OutputWrapper(sys.stderr)
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run, and hand over all of the output while a failure can still be told."""
        try:
            return super().execute(*args, **options)
        finally:
            self.stdout.flush()

    def ask(self, question: str) -> str:
        """Put a question to the person at the terminal, beside the output, and return the answer.

        Raises EOFError when nobody is there.
        """
        self.stderr.write(f"{question} ", plain, "")
        self.stderr.flush()
        try:
            return input()
        except UnicodeDecodeError:  # Whatever it is, it is no yes.
            return ""
        except (EOFError, RuntimeError):  # The latter of a stdin that is closed.
            self.stderr.write()
            raise EOFError from None


def plain(text: str) -> str:
    """Return text without colours."""
    return text
