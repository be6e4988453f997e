"""The worker processes that live, and the waiting jobs that none of them takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..models import WorkerProcess
from .lanes import Lane
from .reading import Reading

ALIVE_WITHIN = timedelta(seconds=45)
"""A worker reports every 15 s; one that missed three reports does not count as alive."""


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker process seen within the last 45 s. `queues`: None means every queue."""

    host: str
    pid: int
    version: str
    mode: str
    slots: int
    busy: int
    types: frozenset[str]
    queues: frozenset[str] | None
    started_at: datetime
    seen_at: datetime

    @property
    def name(self) -> str:
        """Host and process, as a job's `worker` begins."""
        return f"{self.host}:{self.pid}"

    @property
    def queue_names(self) -> tuple[str, ...] | None:
        """The queues in order; None means every queue."""
        return None if self.queues is None else tuple(sorted(self.queues))

    def takes(self, job_type: str, queue: str) -> bool:
        """Whether the worker claims jobs of that type in that queue, pauses aside."""
        if not self.slots or job_type not in self.types:
            return False
        return self.queues is None or queue in self.queues


def workers(using: str | None = None) -> list[LiveWorker]:
    """Return the worker processes that live, by host and process id."""
    return workers_of(Reading.of(using))


def workers_of(reading: Reading) -> list[LiveWorker]:
    """Return the worker processes that live at a reading, by host and process id."""
    seen = WorkerProcess.objects.using(reading.using).filter(
        seen_at__gte=reading.now - ALIVE_WITHIN
    )
    return [
        LiveWorker(
            row.host,
            row.pid,
            row.version,
            row.mode,
            row.slots,
            row.busy,
            frozenset(row.types),
            None if row.queues is None else frozenset(row.queues),
            row.started_at,
            row.seen_at,
        )
        for row in seen.order_by("host", "pid")
    ]


def unserved(lanes: Iterable[Lane], live: Iterable[LiveWorker]) -> list[Lane]:
    """Return the lanes with waiting jobs, not paused, that no live worker claims from."""
    some = list(live)
    return [
        lane
        for lane in lanes
        if lane.tally.pending
        and not lane.paused
        and not any(worker.takes(lane.type, lane.queue) for worker in some)
    ]


def slots_for(job_type: str, queues: Iterable[str], live: Iterable[LiveWorker]) -> int:
    """Return how many slots run a type in any of the queues (none given: in any queue)."""
    wanted = list(queues)
    return sum(
        worker.slots
        for worker in live
        if job_type in worker.types
        and (worker.queues is None or not wanted or not worker.queues.isdisjoint(wanted))
    )
