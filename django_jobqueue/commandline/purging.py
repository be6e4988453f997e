"""`jobqueue purge`: delete old jobs that ended. The totals keep counting them."""

import argparse
from typing import Any

from .acting import at_least, declare_yes
from .printing import counted
from .reading import duration
from .word import Context, Word


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--older-than",
        type=duration,
        required=True,
        metavar="30d",
        help="delete jobs that ended longer ago than this",
    )
    declare_yes(parser)


def run(context: Context, arguments: dict[str, Any]) -> None:
    """Delete them, in batches. That there are none is no failure."""
    manager, age = context.manager, arguments["older_than"]
    count = manager.on_write_alias().finished_before(manager.now() - age).count_up_to()
    if count:
        context.confirm(f"{at_least(count)} will be deleted. Go on?", yes=arguments["yes"])
    deleted = manager.purge(age) if count else 0
    context.printer.document({"deleted": deleted})
    context.printer.line(f"{counted(deleted, 'job')} deleted.")


PURGE = Word("purge", "delete old jobs that ended", declare, run)
