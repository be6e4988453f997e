"""What every word has: arguments to declare, a function to run, and what it runs with."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..managers import JobManager
from .printing import Printer


class Refused(Exception):
    """Nothing was done: nothing matched, or somebody said no. The command exits with 1."""


class Misused(Exception):
    """The arguments do not say what to do. The command exits with 2."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a word runs with: the jobs of one database, and where its answer goes.

    `ask` puts a question to a person and returns the answer; EOFError when nobody is there.
    """

    manager: JobManager
    printer: Printer
    ask: Callable[[str], str]

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask a person to agree, unless `yes`. Raises Refused without a yes, or a person."""
        if yes:
            return
        try:
            answer = self.ask(f"{question} [y/N]")
        except EOFError:
            raise Refused("Nobody is there to be asked. Give --yes to go on.") from None
        if answer.strip().lower() not in {"y", "yes"}:
            raise Refused("Nothing was changed.")


@dataclass(frozen=True, slots=True)
class Word:
    """One subcommand."""

    name: str
    help: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Context, dict[str, Any]], None]
