"""When one job will start and be done, and how many are before it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from typing import NamedTuple

from django.db.models import Q

from ..models import Job
from ..states import JobStatus, PauseKind
from .backlog import assumed_slots, assumptions_of
from .estimates import Assumption, Estimate, basis_of
from .lanes import pauses_of
from .reading import Reading
from .recent import Known, recent_runs
from .workers import LiveWorker, workers_of

MOST_AHEAD = 20_000
"""So many ready jobs are looked at in front of one; behind them a position is "at least"."""

FOUR_OF_FIVE = 1.2816
"""So many standard deviations to each side hold four of five values of a normal distribution."""


class Work(NamedTuple):
    """How long a job in front keeps a slot busy, in seconds, how much that varies, who tells it."""

    mean: float
    variance: float
    samples: int


class Ahead(NamedTuple):
    """The jobs that the workers of a job take before it, in that order; `cut`: not all of them."""

    lanes: list[tuple[str, str]]
    cut: bool


@dataclass(frozen=True)
class Forecast:
    """Positions and estimates for any number of jobs, from one look at the queue.

    What all of them stand on (workers, pauses, running jobs, recent durations) is read once, when
    it is first needed. Each waiting job then costs one more statement.
    """

    reading: Reading

    @classmethod
    def now(cls, using: str | None = None) -> "Forecast":
        """Return a forecast for the jobs of the database `using` (None: where `Job` is read)."""
        return cls(Reading.of(using))

    @cached_property
    def live(self) -> list[LiveWorker]:
        """The worker processes that live."""
        return workers_of(self.reading)

    @cached_property
    def known(self) -> "dict[str, Known]":
        """What is known of each type's durations."""
        return dict(recent_runs(self.reading))

    @cached_property
    def paused(self) -> frozenset[tuple[PauseKind, str]]:
        """What is paused."""
        return frozenset((pause.kind, pause.name) for pause in pauses_of(self.reading))

    @cached_property
    def running(self) -> list[tuple[str, str, float]]:
        """The running jobs: worker, type, and for how many seconds they have run."""
        rows = self.reading.jobs.running().filter(started_at__isnull=False)
        found = rows.values_list("worker", "type", "started_at")[:MOST_AHEAD]
        now = self.reading.now
        return [
            (worker, job_type, max(0.0, (now - started_at).total_seconds()))
            for worker, job_type, started_at in found
            if started_at is not None
        ]

    def is_paused(self, job: Job) -> bool:
        """Whether the job's type or queue is paused."""
        marks = {(PauseKind.TYPE, job.type), (PauseKind.QUEUE, job.queue)}
        return not self.paused.isdisjoint(marks)

    def position(self, job: Job) -> int | None:
        """Return how many jobs are taken before a job; see `insights.position`."""
        ahead = self.line(job)
        return None if ahead is None else len(ahead.lanes)

    def eta(self, job: Job) -> Estimate | None:
        """Return when a job will be done; see `insights.eta`."""
        if job.status == JobStatus.RUNNING:
            return self._of_running(job)
        if job.status != JobStatus.PENDING or self.is_paused(job):
            return None
        return self._of_waiting(job)

    def _takers(self, job: Job) -> list[LiveWorker]:
        return [worker for worker in self.live if worker.takes(job.type, job.queue)]

    def line(self, job: Job) -> Ahead | None:
        """Return the jobs that are taken before a job; None when it does not wait in line."""
        if job.status != JobStatus.PENDING or job.scheduled_for is not None or self.is_paused(job):
            return None
        before = Q(priority__lt=job.priority) | Q(priority=job.priority, id__lt=job.pk)
        ready = self.reading.jobs.ready().filter(before, priority__lte=job.priority)
        # First cut, then chosen from: so that jobs of other workers' types cannot make it long.
        first = list(
            ready.order_by("priority", "id").values_list("type", "queue")[: MOST_AHEAD + 1]
        )
        takers = self._takers(job)
        taken = {lane: self._is_taken(lane, takers) for lane in set(first)}
        return Ahead([lane for lane in first[:MOST_AHEAD] if taken[lane]], len(first) > MOST_AHEAD)

    def _is_taken(self, lane: tuple[str, str], takers: list[LiveWorker]) -> bool:
        marks = {(PauseKind.TYPE, lane[0]), (PauseKind.QUEUE, lane[1])}
        if not self.paused.isdisjoint(marks):
            return False
        return not takers or any(worker.takes(*lane) for worker in takers)

    def _of_running(self, job: Job) -> Estimate:
        known = self.known.get(job.type)
        if known is None or job.started_at is None:
            return Estimate(None, basis_of(0, ()), starts_in=0.0)
        elapsed = max(0.0, (self.reading.now - job.started_at).total_seconds())
        left = known.runs.remaining(elapsed)
        spread = FOUR_OF_FIVE * known.runs.variance**0.5
        assumptions = assumptions_of(known.samples, 1)
        return Estimate(
            left,
            basis_of(known.samples, assumptions),
            samples=known.samples,
            mean=known.runs.mean,
            slots=1,
            starts_in=0.0,
            low=max(0.0, left - spread),
            high=left + spread,
            assumptions=assumptions,
        )

    def _of_waiting(self, job: Job) -> Estimate:
        takers = self._takers(job)
        slots = sum(worker.slots for worker in takers)
        known = self.known.get(job.type)
        if known is None:
            return Estimate(None, basis_of(0, ()), slots=slots)
        assumptions = assumptions_of(known.samples, slots)
        working = slots or assumed_slots()
        ahead = self.line(job)
        variance = 0.0
        if ahead is None:
            assert job.scheduled_for is not None, "a paused job was answered before"
            starts_in = max(0.0, (job.scheduled_for - self.reading.now).total_seconds())
            assumptions = (*assumptions, Assumption.NOT_DUE)
            cut = False
        else:
            cut = ahead.cut
            work = self._work_of(ahead.lanes, takers)
            starts_in = first_free(self._busy_for(takers, working), (item.mean for item in work))
            variance = variance_of(work) / working**2
        if cut:
            assumptions = (*assumptions, Assumption.FAR_AWAY)
        done_in = starts_in + known.runs.mean
        spread = FOUR_OF_FIVE * (variance + known.runs.variance) ** 0.5
        return Estimate(
            done_in,
            basis_of(known.samples, assumptions),
            samples=known.samples,
            mean=known.runs.mean,
            slots=working,
            starts_in=starts_in,
            low=max(0.0, done_in - spread),
            high=None if cut else done_in + spread,
            at_least=cut,
            assumptions=assumptions,
        )

    def _busy_for(self, takers: list[LiveWorker], slots: int) -> list[float]:
        """Return in how many seconds each slot is free, as far as durations tell."""
        processes = {worker.name for worker in takers}
        left = [
            self.known[job_type].runs.remaining(elapsed) if job_type in self.known else 0.0
            for worker, job_type, elapsed in self.running
            if worker.rpartition(":")[0] in processes
        ]
        return [*left, *[0.0] * (slots - len(left))]

    def _work_of(self, lanes: Iterable[tuple[str, str]], takers: list[LiveWorker]) -> list[Work]:
        """Return what each job in front costs the workers that take the job behind."""
        works: dict[tuple[str, str], Work] = {}
        for lane in lanes:
            if lane not in works:
                works[lane] = self._work_of_lane(lane, takers)
        return [works[lane] for lane in lanes]

    def _work_of_lane(self, lane: tuple[str, str], takers: list[LiveWorker]) -> Work:
        known = self.known.get(lane[0])
        if known is None:
            work = self.any_type
        else:
            work = Work(known.runs.mean, known.runs.variance, len(known.runs.seconds))
        if not takers:
            return work
        # Other workers take their share of the jobs in front.
        here = sum(worker.slots for worker in takers if worker.takes(*lane))
        anywhere = sum(worker.slots for worker in self.live if worker.takes(*lane))
        share = here / anywhere if anywhere else 0.0
        return Work(work.mean * share, work.variance * share, work.samples)

    @cached_property
    def any_type(self) -> Work:
        """What a job costs of whose type nothing is known: the mean of all types."""
        means = [known.runs.mean for known in self.known.values()]
        return Work(sum(means) / len(means) if means else 0.0, 0.0, 1)


def variance_of(works: Iterable[Work]) -> float:
    """Return how much the sum of some work varies: each by itself, and all by a mistaken mean."""
    return sum(
        count * work.variance * (1 + count / work.samples) for work, count in Counter(works).items()
    )


def first_free(busy_for: list[float], work: Iterable[float]) -> float:
    """Return when a slot is free for the next job, after the work in front is done in order.

    `busy_for`: in how many seconds each slot is free.
    """
    slots = list(busy_for)
    heapify(slots)
    for seconds in work:
        heapreplace(slots, slots[0] + seconds)
    return slots[0]
