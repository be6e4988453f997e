"""`jobqueue list`: the newest jobs, some of them by filters."""

import argparse
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ..conf import stuck_threshold
from ..models import Job
from ..states import JobStatus
from .describing import BIG_COLUMNS, about, described, error_class, seconds_between, tries
from .filters import declare_filters, filtered
from .printing import NARROWEST, counted, span
from .reading import positive
from .word import Context, Word

LIMIT = 50

HEADINGS = ("ID", "TYPE", "QUEUE", "STATUS", "DUE", "TRIES", "AGE", "TOOK", "SUBJECT", "ERROR")

FLEXIBLE = {"TYPE": 24, "QUEUE": NARROWEST, "SUBJECT": NARROWEST, "ERROR": NARROWEST}

EXPENDABLE = ("TOOK", "SUBJECT", "QUEUE", "TRIES", "ERROR", "AGE")

HEAD_OF_ID = 13
"""The first digits of an id are its time; as many as the admin shows."""


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
    ids = [str(job.pk) for job in shown]
    if printer.width is not None:
        ids = shortened(ids)
    stuck = stuck_of(context, shown)
    rows = [[name, *row_of(job, now, stuck)] for name, job in zip(ids, shown, strict=True)]
    printer.table(HEADINGS, rows, flexible=FLEXIBLE, expendable=EXPENDABLE)
    if more:
        printer.line(f"The newest {counted(limit, 'job')}; there are more. See --limit.")


def shortened(ids: Sequence[str]) -> list[str]:
    """Return how the ids begin, as long as it takes to tell them apart."""
    longest = max(map(len, ids))
    for length in range(HEAD_OF_ID, longest):
        heads = [one[:length] for one in ids]
        if len(set(heads)) == len(ids):
            return heads
    return list(ids)


def stuck_of(context: Context, jobs: Iterable[Job]) -> frozenset[UUID]:
    """Return the ids of those of the jobs that are stuck, as `--status stuck` finds them."""
    running = [job.pk for job in jobs if job.status == JobStatus.RUNNING]
    if not running:
        return frozenset()
    rows = context.manager.on_write_alias().filter(pk__in=running).stuck(stuck_threshold())
    return frozenset(rows.values_list("pk", flat=True))


def row_of(job: Job, now: datetime, stuck: Collection[UUID]) -> list[str]:
    """Return the cells of one job, but for its id."""
    end = job.finished_at or (now if job.status == JobStatus.RUNNING else None)
    return [
        job.type,
        job.queue,
        state_of(job, stuck),
        due_of(job, now),
        tries(job),
        span(seconds_between(job.created_at, now)),
        span(seconds_between(job.started_at, end)),
        about(job),
        error_class(job.last_error),
    ]


def state_of(job: Job, stuck: Collection[UUID]) -> str:
    """Return the state by the names that `--status` takes."""
    if job.pk in stuck:
        return "stuck"
    return "scheduled" if is_scheduled(job) else job.status


def due_of(job: Job, now: datetime) -> str:
    """Return in how long a scheduled job is due; a dash for others."""
    if not is_scheduled(job):
        return "-"
    left = seconds_between(now, job.scheduled_for) or 0.0
    return f"in {span(left)}" if left > 0 else "now"


def is_scheduled(job: Job) -> bool:
    """Whether the job waits for its time."""
    return job.status == JobStatus.PENDING and job.scheduled_for is not None


LIST = Word("list", "list jobs, the newest first", declare, run)
