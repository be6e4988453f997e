"""`jobqueue list`: the newest jobs, some of them by filters."""

import argparse
from typing import Any

from ..models import Job
from .describing import BIG_COLUMNS, about, described, error_class, seconds_between, tries
from .filters import declare_filters, filtered
from .printing import counted, span
from .reading import positive
from .word import Context, Word

LIMIT = 50

HEADINGS = ("ID", "TYPE", "QUEUE", "STATUS", "TRIES", "AGE", "TOOK", "SUBJECT", "ERROR")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare_filters(parser)
    parser.add_argument(
        "--limit", type=positive, default=LIMIT, metavar="N", help=f"at most so many ({LIMIT})"
    )


def run(context: Context, arguments: dict[str, Any]) -> None:
    """Print the jobs, the newest first."""
    jobs = filtered(context.manager, arguments).defer(*BIG_COLUMNS).order_by("-pk")
    limit = arguments["limit"]
    found = list(jobs[: limit + 1])
    shown, more = found[:limit], len(found) > limit
    printer = context.printer
    printer.document({"jobs": [described(job) for job in shown], "more": more})
    if not shown:
        printer.line("No jobs match.")
        return
    now = context.manager.now()
    rows = [row_of(job, now) for job in shown]
    printer.table(HEADINGS, rows, flexible={"TYPE", "QUEUE", "SUBJECT", "ERROR"})
    if more:
        printer.line(f"The newest {counted(limit, 'job')}; there are more. See --limit.")


def row_of(job: Job, now: Any) -> list[str]:
    """Return the cells of one job."""
    end = job.finished_at or (now if job.status == "running" else None)
    return [
        str(job.pk),
        job.type,
        job.queue,
        "scheduled" if job.status == "pending" and job.scheduled_for else job.status,
        tries(job),
        span(seconds_between(job.created_at, now)),
        span(seconds_between(job.started_at, end)),
        about(job),
        error_class(job.last_error),
    ]


LIST = Word("list", "list jobs, the newest first", declare, run)
