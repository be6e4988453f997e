"""`jobqueue purge`: delete old jobs that ended. The totals keep counting them."""

import argparse
from typing import Any

from .. import discovery
from ..handlers.purge import purge, site_keepings
from ..managers import JobManager
from ..policy import Keeping
from ..states import COUNT_LIMIT
from ..task_backend import site
from .acting import at_least, declare_yes
from .printing import counted
from .reading import duration
from .word import Context, Refused, Word


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--older-than",
        type=duration,
        metavar="30d",
        help=(
            "delete jobs that ended longer ago than this, whatever their type; "
            "without it: what the nightly purge deletes"
        ),
    )
    declare_yes(parser)


def run(context: Context, arguments: dict[str, Any]) -> None:
    """Delete them, in batches. That there are none is no failure."""
    manager, age = context.manager, arguments["older_than"]
    keepings = nightly(manager) if age is None else [Keeping(age)]
    count = count_of(manager, keepings)
    if count:
        context.confirm(f"{at_least(count)} will be deleted. Go on?", yes=arguments["yes"])
    deleted = purge(manager, keepings) if count else 0
    context.printer.document({"deleted": deleted})
    context.printer.line(f"{counted(deleted, 'job')} deleted.")


def nightly(manager: JobManager) -> list[Keeping]:
    """Return what the nightly purge keeps; Refused when not every handler could be asked."""
    for failure in (*discovery.failures(), *site.discover_tasks()):
        raise Refused(
            f"The module {failure.module} could not be imported: {failure.error}. How long the "
            "jobs of its handlers are kept is not known. Mend it, or give --older-than."
        )
    return site_keepings(manager)


def count_of(manager: JobManager, keepings: list[Keeping]) -> int:
    """Return how many jobs are kept no longer; counting ends at a limit."""
    jobs, now = manager.on_write_alias(), manager.now()
    found = 0
    for keeping in keepings:
        old = jobs.finished_before(
            now - keeping.retention, types=keeping.types, except_types=keeping.except_types
        )
        found += old.count_up_to(COUNT_LIMIT - found)
    return found


PURGE = Word("purge", "delete old jobs that ended", declare, run)
