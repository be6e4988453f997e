"""What waits and runs now, by type and queue."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q, Value

from ..conf import stuck_threshold
from ..models import QueueControl
from ..querysets import MOMENT, stuck_signals
from ..states import PauseKind
from .reading import Reading

WAITING = {
    "retried": Count("pk", filter=Q(attempts__gt=0)),
    "rate_limited": Count("pk", filter=Q(rate_limit_hits__gt=0)),
}


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue or a type that no worker claims from, for as long as the pause lasts."""

    kind: PauseKind
    name: str
    reason: str
    paused_at: datetime


@dataclass(frozen=True, slots=True)
class Tally:
    """How many jobs wait or run.

    `ready` may be claimed now; `scheduled` wait for their time, of which `due` have reached it.
    Of the waiting ones `retried` were tried before and `rate_limited` were deferred because a
    provider asked for it. Of the running ones `stuck` show that nobody holds them any more.
    """

    ready: int = 0
    scheduled: int = 0
    due: int = 0
    running: int = 0
    retried: int = 0
    rate_limited: int = 0
    stuck: int = 0

    @property
    def pending(self) -> int:
        """How many wait, ready or scheduled."""
        return self.ready + self.scheduled

    @property
    def active(self) -> int:
        """How many wait or run."""
        return self.pending + self.running

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Tally)))


@dataclass(frozen=True, slots=True)
class Lane:
    """The jobs of one type in one queue that wait or run.

    `oldest_due_at`: since when the one that waits longest could have run; None when none could.
    """

    type: str
    queue: str
    tally: Tally
    oldest_due_at: datetime | None
    paused: bool


def pauses(using: str | None = None) -> list[Pause]:
    """Return what is paused, queues first."""
    return pauses_of(Reading.of(using))


def pauses_of(reading: Reading) -> list[Pause]:
    """Return what is paused at a reading, queues first."""
    rows = QueueControl.objects.using(reading.using).order_by("kind", "name")
    return [Pause(PauseKind(row.kind), row.name, row.reason, row.paused_at) for row in rows]


def lanes_of(reading: Reading, paused: Iterable[Pause]) -> list[Lane]:
    """Return the lanes with jobs that wait or run, by type and queue.

    Three statements, one for each partial index, so that finished jobs cost nothing.
    """
    is_due = Q(scheduled_for__lte=reading.now)
    moment = Value(reading.now, MOMENT)
    is_stuck = Q(*stuck_signals(stuck_threshold(), moment, moment).values(), _connector=Q.OR)
    jobs = reading.jobs
    counted: list[dict[str, Any]] = [
        *by_lane(jobs.ready(), ready=Count("pk"), oldest_due_at=Min("ready_at"), **WAITING),
        *by_lane(
            jobs.scheduled(),
            scheduled=Count("pk"),
            due=Count("pk", filter=is_due),
            oldest_due_at=Min("scheduled_for", filter=is_due),
            **WAITING,
        ),
        *by_lane(jobs.running(), running=Count("pk"), stuck=Count("pk", filter=is_stuck)),
    ]
    tallies: dict[tuple[str, str], Tally] = {}
    oldest: dict[tuple[str, str], datetime] = {}
    for row in counted:
        place = row.pop("type"), row.pop("queue")
        due_at = row.pop("oldest_due_at", None)
        tallies[place] = tallies.get(place, Tally()) + Tally(**row)
        if due_at is not None:
            oldest[place] = min(due_at, oldest.get(place, due_at))
    stopped = {(pause.kind, pause.name) for pause in paused}
    return [
        Lane(
            *place,
            tallies[place],
            oldest.get(place),
            paused=not stopped.isdisjoint(
                {(PauseKind.TYPE, place[0]), (PauseKind.QUEUE, place[1])}
            ),
        )
        for place in sorted(tallies)
    ]


def by_lane(jobs: Any, **figures: Any) -> Any:
    """Return the figures of some jobs by type and queue."""
    return jobs.order_by().values("type", "queue").annotate(**figures)


def tally_of(lanes: Iterable[Lane]) -> Tally:
    """Return what some lanes add up to."""
    return sum((lane.tally for lane in lanes), Tally())


def tallies_by_type(lanes: Iterable[Lane]) -> dict[str, Tally]:
    """Return what the lanes of each type add up to."""
    tallies: dict[str, Tally] = {}
    for lane in lanes:
        tallies[lane.type] = tallies.get(lane.type, Tally()) + lane.tally
    return tallies


def oldest_due(lanes: Iterable[Lane]) -> Lane | None:
    """Return the lane of the job that waits longest and could run, that no pause holds back."""
    dues = [
        (lane.oldest_due_at, lane)
        for lane in lanes
        if lane.oldest_due_at is not None and not lane.paused
    ]
    return min(dues, key=lambda due: due[0], default=(None, None))[1]
