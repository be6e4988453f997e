"""When the backlog of each type will be gone."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from ..conf import settings
from ..database.samples import Durations
from .estimates import ENOUGH_SAMPLES, Assumption, Estimate, basis_of
from .history import durations_in
from .lanes import Lane, lanes_of, pauses_of, tallies_by_type
from .reading import Reading
from .window import DEFAULT_WINDOW
from .workers import LiveWorker, slots_for, workers_of


def etas(window: timedelta = DEFAULT_WINDOW, using: str | None = None) -> Mapping[str, Estimate]:
    """Return when the jobs of each type that wait or run will be done.

    (pending + running) x mean duration in the window / live slots that run the type. Every slot
    is counted for each type that it may run. Raises `InvalidWindow`.
    """
    reading = Reading.of(using)
    lanes = lanes_of(reading, pauses_of(reading))
    return etas_of(lanes, durations_in(reading, window), workers_of(reading))


def etas_of(
    lanes: Sequence[Lane], history: Durations, live: Sequence[LiveWorker]
) -> dict[str, Estimate]:
    """Return when the work of each lane's type will be done, by type."""
    queues: dict[str, set[str]] = {}
    for lane in lanes:
        queues.setdefault(lane.type, set()).add(lane.queue)
    estimates = {}
    for job_type, tally in sorted(tallies_by_type(lanes).items()):
        slots = slots_for(job_type, queues[job_type], live)
        estimates[job_type] = estimate_of(tally.active, job_type, slots, history)
    return estimates


def estimate_of(jobs: int, job_type: str, slots: int, history: Durations) -> Estimate:
    """Return when so many jobs of a type will be done by so many slots."""
    spread = history.by_type.get(job_type)
    if spread is None:
        return Estimate(None, basis_of(0, ()), slots=slots)
    assumptions = assumptions_of(spread.samples, slots)
    working = slots or assumed_slots()
    return Estimate(
        jobs * spread.mean / working,
        basis_of(spread.samples, assumptions),
        samples=spread.samples,
        mean=spread.mean,
        slots=working,
        assumptions=assumptions,
    )


def assumptions_of(samples: int, slots: int) -> tuple[Assumption, ...]:
    """Return what an estimate has to assume."""
    few = (Assumption.FEW_SAMPLES,) if samples < ENOUGH_SAMPLES else ()
    return few if slots else (*few, Assumption.NO_WORKER)


def assumed_slots() -> int:
    """Return how many slots a worker of this site would have."""
    configured: int = settings.WORKER_CONCURRENCY
    return max(1, configured)
