"""`jobqueue retry`, `cancel` and `reap`: by ids, or all that match."""

import argparse
from functools import partial
from typing import Any

from ..states import COUNT_LIMIT, BulkReport, SkipReason
from ..worker.preflight import first_line
from . import operations
from .filters import declare_filters, filtered, is_filtered
from .operations import Operation
from .printing import counted
from .reading import all_named, job_id, positive
from .word import Context, Misused, Refused, Word

LIMIT = 10_000

SKIPPED = {
    SkipReason.RUNNING: "running",
    SkipReason.STATE: "in another state",
    SkipReason.LOCKED: "locked by somebody",
    SkipReason.DUPLICATE: "whose dedup key is taken",
    SkipReason.GONE: "deleted meanwhile",
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("ids", nargs="*", type=job_id, metavar="ID", help="ids, or how they begin")
    parser.add_argument(
        "--all-matching", action="store_true", help="all jobs that the filters describe"
    )
    declare_filters(parser)
    parser.add_argument(
        "--limit",
        type=positive,
        default=LIMIT,
        metavar="N",
        help=f"with --all-matching: at most so many ({LIMIT})",
    )
    declare_yes(parser)


def declare_yes(parser: argparse.ArgumentParser) -> None:
    """Declare the option that answers the question."""
    parser.add_argument(
        "--yes", "--no-input", "--noinput", action="store_true", dest="yes", help="do not ask"
    )


def run(operation: Operation, context: Context, arguments: dict[str, Any]) -> None:
    """Change the jobs and say how many; Refused when none was changed."""
    if arguments["ids"]:
        if arguments["all_matching"] or is_filtered(arguments):
            raise Misused("Give ids, or --all-matching with filters, not both.")
        jobs = context.manager.on_write_alias()
        ids = all_named(jobs, arguments["ids"])
        done = operation.run(context.manager, jobs.filter(pk__in=ids), len(ids))
    elif arguments["all_matching"]:
        done = all_matching(operation, context, arguments)
    else:
        raise Misused("Give ids, or --all-matching, with filters or without.")
    report(operation, context, done)


def all_matching(operation: Operation, context: Context, arguments: dict[str, Any]) -> BulkReport:
    """Ask, and change what matches."""
    jobs = operation.eligible(filtered(context.manager, arguments))
    limit = arguments["limit"]
    count = jobs.count_up_to()
    if not count:
        raise Refused(f"No job matches that can be {operation.past}.")
    some = f"The oldest {limit} of " if count > limit else ""
    context.confirm(
        f"{some}{at_least(count)} will be {operation.past}. Go on?", yes=arguments["yes"]
    )
    return operation.run(context.manager, jobs, limit)


def at_least(count: int) -> str:
    """Return how many jobs that are; counting ends at a limit."""
    return counted(count, "job") + (" or more" if count >= COUNT_LIMIT else "")


def report(operation: Operation, context: Context, done: BulkReport) -> None:
    """Say what was done; Refused when that is nothing."""
    context.printer.document(
        {
            "done": done.done,
            "skipped": done.skipped,
            "reasons": {reason.value: count for reason, count in done.reasons.items()},
            "remaining": done.remaining,
            "error": None if done.error is None else first_line(done.error),
        }
    )
    text = f"{counted(done.done, 'job')} {operation.past}, {done.skipped} skipped"
    if done.reasons:
        reasons = [f"{count} {SKIPPED[reason]}" for reason, count in done.reasons.items()]
        text += f" ({', '.join(reasons)})"
    if done.remaining:
        more = " or more" if done.remaining >= COUNT_LIMIT else ""
        text += f", {done.remaining}{more} remaining"
    context.printer.line(f"{text}.")
    if done.error is not None:
        raise Refused(f"The database ended it early: {first_line(done.error)}")
    if not done.done:
        raise Refused(f"No job was {operation.past}: {operation.why_not}")


RETRY = Word(
    "retry", "make failed or cancelled jobs wait again", declare, partial(run, operations.RETRY)
)
CANCEL = Word("cancel", "cancel pending jobs", declare, partial(run, operations.CANCEL))
REAP = Word("reap", "return or fail stuck jobs at once", declare, partial(run, operations.REAP))
