"""The filters that several words share, from options to a set of jobs."""

import argparse
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThanOrEqual

from ..conf import stuck_threshold
from ..managers import JobManager
from ..querysets import JobQuerySet
from ..states import JobStatus
from .reading import since, subject, text

FILTERS = ("status", "type", "queue", "subject", "since")

STATES: Mapping[str, Callable[[JobQuerySet], JobQuerySet]] = {
    **{status.value: lambda jobs, s=status: jobs.filter(status=s) for status in JobStatus},  # type: ignore[misc]
    "scheduled": lambda jobs: jobs.scheduled(),
    "stuck": lambda jobs: jobs.stuck(stuck_threshold()),
}


def declare_filters(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--status", choices=tuple(STATES), help="only jobs in this state")
    parser.add_argument("--type", type=text, metavar="TYPE", help="only jobs of this type")
    parser.add_argument("--queue", type=text, metavar="QUEUE", help="only jobs of this queue")
    parser.add_argument(
        "--subject", type=subject, metavar="TYPE:ID", help="only jobs about this subject"
    )
    parser.add_argument(
        "--since",
        type=since,
        metavar="2h|MOMENT",
        help="only jobs that ended, or were enqueued, since then",
    )


def is_filtered(arguments: Mapping[str, Any]) -> bool:
    """Whether any filter is given."""
    return any(arguments[name] is not None for name in FILTERS)


def filtered(manager: JobManager, arguments: Mapping[str, Any]) -> JobQuerySet:
    """Return the jobs that the options describe; without any, all."""
    jobs = manager.on_write_alias()
    if arguments["status"] is not None:
        jobs = STATES[arguments["status"]](jobs)
    if arguments["type"] is not None:
        jobs = jobs.filter(type=arguments["type"])
    if arguments["queue"] is not None:
        jobs = jobs.filter(queue=arguments["queue"])
    if arguments["subject"] is not None:
        jobs = jobs.about(*arguments["subject"])
    if (begin := arguments["since"]) is not None:
        moment = manager.now() - begin if isinstance(begin, timedelta) else begin
        jobs = jobs.filter(GreaterThanOrEqual(Coalesce("finished_at", "created_at"), moment))
    return jobs
