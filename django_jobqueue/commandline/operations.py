"""What the command line can do to sets of jobs: each with its one call of the manager."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from ..conf import settings, stuck_threshold
from ..managers import JobManager
from ..querysets import JobQuerySet
from ..states import BulkReport

TAKE_YOUR_TIME = timedelta.max
"""A command has no request to answer in time."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A transition: its name in the past, which jobs it applies to, the call, and when it refuses.

    `run` takes the manager, the jobs and how many of them to change at most; 0 only counts.
    """

    past: str
    eligible: Callable[[JobQuerySet], JobQuerySet]
    run: Callable[[JobManager, JobQuerySet, int], BulkReport]
    why_not: str


def cancel(manager: JobManager, jobs: JobQuerySet, limit: int) -> BulkReport:
    """Cancel those that are pending."""
    return manager.cancel_all(jobs, limit=limit, within=TAKE_YOUR_TIME)


def retry(manager: JobManager, jobs: JobQuerySet, limit: int) -> BulkReport:
    """Make those that failed or were cancelled wait again."""
    return manager.retry_all(jobs, limit=limit, within=TAKE_YOUR_TIME)


def reap(manager: JobManager, jobs: JobQuerySet, limit: int) -> BulkReport:
    """End the dead claims of those that are stuck."""
    budget = settings.MAX_ATTEMPTS
    return manager.reset_stuck(jobs, stuck_threshold(), budget, limit=limit, within=TAKE_YOUR_TIME)


def stuck(jobs: JobQuerySet) -> JobQuerySet:
    """Return those that show a reaper signal."""
    return jobs.stuck(stuck_threshold())


CANCEL = Operation("cancelled", JobQuerySet.pending, cancel, "only pending jobs are.")
RETRY = Operation(
    "retried",
    JobQuerySet.retryable,
    retry,
    "only failed and cancelled jobs are, and only while no other active job has their dedup key.",
)
REAP = Operation("reset", stuck, reap, "only stuck jobs are: running, with a lease that expired.")
