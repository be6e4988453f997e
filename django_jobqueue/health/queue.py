"""Is work done in time? What waits, what is stuck and what fails, against thresholds."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Min, Q

from ..conf import stuck_threshold
from ..database.clock import database_now
from ..models import Job
from ..states import JobStatus
from .bounded import NoAnswer, ask
from .report import Problem, Report

PROBE = "queue"

WINDOW = timedelta(hours=1)

MOST_SAMPLES = 10_000
"""The latest of the window stand for all of them."""

FEWEST_SAMPLES = 20
"""Fewer say nothing about a share: one failure of one job is no outage."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the database says. `overdue`: seconds that the oldest due job has waited, or None."""

    overdue: float | None
    stuck: int
    ended: int
    failed: int

    @property
    def failing(self) -> float | None:
        """The share of the ended jobs that failed; None for too few of them."""
        return self.failed / self.ended if self.ended >= FEWEST_SAMPLES else None


def queue(
    *, max_overdue: float, max_stuck: int, max_failing: float, using: str | None = None
) -> Report:
    """Report on the queue's work.

    `max_overdue`: seconds that a due job may wait, and a stuck one; jobs of paused queues and
    types do not count. `max_stuck`: how many jobs may be stuck longer. `max_failing`: which share
    of the jobs that ended in the last hour may have failed, of 20 or more. `using`: the alias of
    the jobs, by default where they are written.
    """
    alias = using or Job.objects.write_alias
    try:
        found = ask(alias, lambda connection: read(connection, max_overdue))
    except NoAnswer as error:
        text = f'The database "{alias}" does not answer: {error}.'
        return Report(PROBE, (Problem("database-away", text),))
    problems = []
    if found.overdue is not None and found.overdue > max_overdue:
        text = f"The oldest due job has waited {found.overdue:.0f} s, over {max_overdue:g} s."
        problems.append(Problem("overdue", text))
    if found.stuck > max_stuck:
        text = (
            f"{found.stuck} jobs are stuck for over {max_overdue:g} s; {max_stuck} may be. "
            "Does a worker run, with REAPER_ENABLED?"
        )
        problems.append(Problem("stuck", text))
    if found.failing is not None and found.failing > max_failing:
        text = (
            f"{found.failed} of the {found.ended} jobs that ended in the last hour failed: "
            f"{found.failing:.0%}, over {max_failing:.0%}."
        )
        problems.append(Problem("failing", text))
    measures = {
        "overdue_seconds": None if found.overdue is None else round(found.overdue, 1),
        "stuck": found.stuck,
        "ended": found.ended,
        "failed": found.failed,
        "failing": None if found.failing is None else round(found.failing, 3),
    }
    return Report(PROBE, tuple(problems), measures)


def read(connection: BaseDatabaseWrapper, max_overdue: float) -> Reading:
    """Ask the database, in three statements."""
    now = database_now(connection)
    jobs = Job.objects.using(connection.alias)
    due = jobs.pending().filter(Q(scheduled_for__isnull=True) | Q(scheduled_for__lte=now))
    oldest = due.not_paused().aggregate(at=Min("ready_at"))["at"]
    stuck = jobs.stuck(stuck_threshold(), as_of=now - timedelta(seconds=max_overdue))
    ended = jobs.filter(
        status__in=[JobStatus.SUCCEEDED, JobStatus.FAILED], finished_at__gte=now - WINDOW
    ).order_by("-finished_at")[:MOST_SAMPLES]
    counts = ended.aggregate(
        ended=Count("pk"), failed=Count("pk", filter=Q(status=JobStatus.FAILED))
    )
    waited = None if oldest is None else max((now - oldest).total_seconds(), 0.0)
    return Reading(waited, stuck.count(), counts["ended"], counts["failed"])
