"""The two questions of somebody who waits for a job: when, and how many are before it."""

from datetime import timedelta

from django.db import router

from ..models import Job
from .backlog import estimate_of
from .estimates import Estimate
from .forecast import Forecast
from .history import durations_in
from .lanes import lanes_of
from .reading import Reading
from .window import DEFAULT_WINDOW
from .workers import slots_for, workers_of


def position(job: Job, *, using: str | None = None) -> int | None:
    """Return how many ready jobs the workers of a job take before it: 0 when it is next.

    These are the jobs of a smaller priority number, or of the same and an older id, that some live
    worker may take which may take this job too; without such a worker, all ready ones. Paused ones
    do not count. None when the job does not wait in line: it runs, is terminal, is paused, or
    waits for its time. At most 20,000 ready jobs are looked at: see `Estimate.at_least`.

    `job` is taken as it is in memory. Two to four statements.
    """
    return Forecast.now(alias_of(job, using)).position(job)


def alias_of(job: Job, using: str | None) -> str:
    """Return the alias to ask about a job: the one given, else the one it came from."""
    return using or job._state.db or router.db_for_read(Job)  # noqa: SLF001 (Django's word for it)


def eta(
    job: Job | str, *, window: timedelta = DEFAULT_WINDOW, using: str | None = None
) -> Estimate | None:
    """Return when a job will be done, or all the jobs of a type.

    For a job: the jobs in front of it and those that run are dealt out to the slots of the live
    workers that take it, each with the mean duration of its type among the latest 5,000 finished
    jobs. None when the job is terminal or paused. `Estimate.starts_in` says when it will start.
    `job` is taken as it is in memory. For many jobs, ask one `Forecast`.

    For a type: (pending + running) x mean duration in the window / live slots that run it, which
    reads all jobs of the window. `window` counts for a type only; `InvalidWindow` is raised for
    one that is too long.
    """
    if isinstance(job, Job):
        return Forecast.now(alias_of(job, using)).eta(job)
    reading = Reading.of(using)
    history = durations_in(reading, window)
    lanes = [lane for lane in lanes_of(reading, ()) if lane.type == job]
    slots = slots_for(job, [lane.queue for lane in lanes], workers_of(reading))
    return estimate_of(sum(lane.tally.active for lane in lanes), job, slots, history)
