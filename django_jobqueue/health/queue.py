"""Is work done in time? What waits, what is stuck and what fails, against thresholds."""

from django.db import DatabaseError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .. import remedy
from ..conf import stuck_threshold
from ..database.clock import database_now
from ..insights.reading import Reading
from ..insights.troubles import Limits, Trouble, Vitals, troubles_of, vitals_of
from ..insights.workers import workers_of
from ..models import Job
from ..worker.preflight import missing_migrations
from .bounded import NoAnswer, ask
from .ready import away, unmigrated
from .report import Problem, Report

PROBE = "queue"


def queue(
    *, max_overdue: float, max_stuck: int, max_failing: float, using: str | None = None
) -> Report:
    """Report on the queue's work.

    `max_overdue`: seconds that a due job may wait, and a stuck one; jobs of paused queues and
    types do not count. `max_stuck`: how many jobs may be stuck longer. `max_failing`: which share
    of the jobs that ended in the last hour may have failed, of 20 or more. `using`: the alias of
    the jobs, by default where they are written. Raises InvalidSettings for a STUCK_THRESHOLD that
    cannot be used.
    """
    alias = using or Job.objects.write_alias
    limits = Limits(max_overdue, max_stuck, max_failing)
    stuck_threshold()  # What is wrong with a setting is not to be said of the database.
    try:
        answer = ask(alias, lambda connection: problems_or_missing(connection, limits))
    except NoAnswer as error:
        return Report(PROBE, (away(alias, error),))
    if isinstance(answer, list):
        return Report(PROBE, (unmigrated(alias, answer),))
    found, problems = answer
    measures = {
        "overdue_seconds": None if found.overdue is None else round(found.overdue, 1),
        "stuck": found.stuck,
        "ended": found.ended,
        "failed": found.failed,
        "failing": None if found.failing is None else round(found.failing, 3),
    }
    return Report(PROBE, tuple(problems), measures)


def problems_or_missing(
    connection: BaseDatabaseWrapper, limits: Limits
) -> tuple[Vitals, list[Problem]] | list[str]:
    """Return what the database says, or the migrations for lack of which it cannot."""
    try:
        with transaction.atomic(using=connection.alias):
            reading = Reading(connection.alias, database_now(connection))
            found = vitals_of(reading, limits)
            problems = [
                Problem(trouble.value, told(trouble, found, limits, reading))
                for trouble in troubles_of(found, limits)
            ]
            return found, problems
    except DatabaseError:
        if missing := missing_migrations(connection):
            return missing
        raise


def told(trouble: Trouble, found: Vitals, limits: Limits, reading: Reading) -> str:
    """Return a sentence about what is wrong."""
    if trouble is Trouble.OVERDUE:
        return overdue_text(found, limits.max_overdue, reading)
    if trouble is Trouble.STUCK:
        return (
            f"{found.stuck} jobs are stuck for over {limits.max_overdue:g} s; "
            f"{limits.max_stuck} may be. Does a worker run, with REAPER_ENABLED?"
        )
    return (
        f"{found.failed} of the {found.ended} jobs that ended in the last hour failed: "
        f"{found.failing:.0%}, over {limits.max_failing:.0%}."
    )


def overdue_text(found: Vitals, max_overdue: float, reading: Reading) -> str:
    """Say which job waits, and why when no worker takes it."""
    assert found.oldest is not None
    whose = "{} of the queue {}".format(*found.oldest)
    why = remedy.unserved(*found.oldest, workers_of(reading))
    text = f"The oldest due job ({whose}) has waited {found.overdue:.0f} s, over {max_overdue:g} s"
    return f"{text}: {why}." if why else f"{text}."
