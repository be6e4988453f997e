"""A Prometheus collector for the web process: what the jobs table says, at every scrape.

Needs the extra `prometheus`. A site registers it once, for example in an app's `ready()`:

    from prometheus_client import REGISTRY
    from django_jobqueue.prometheus import JobQueueCollector
    REGISTRY.register(JobQueueCollector())

Whatever web process answers the scrape reads the same rows, so one target is enough. All that is
read are jobs that wait or run, those that ended in the last five minutes, and three small tables:
finished jobs cost nothing, however many there are.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import Error as DatabaseFailure
from django.db import connections, router
from django.db.models import Count, Min, Sum
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from .conf import settings
from .database.clock import database_now
from .logs import get_logger
from .models import Job, QueueControl, WorkerProcess

logger = get_logger(__name__)

MOST_PLACES = 500
"""More combinations of type and queue than these are shown together, as "other"."""

OTHER = "other"

RECENTLY = timedelta(minutes=5)

ALIVE_WITHIN = timedelta(seconds=45)
"""A worker that was not seen for three of its reports is not counted."""

Place = tuple[str, str]

FAMILIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "jobqueue_up": ("Whether the jobs table could be read.", ()),
    "jobqueue_jobs": ("Jobs that wait or run.", ("type", "queue", "state")),
    "jobqueue_oldest_due_age_seconds": (
        "How long the job that has waited longest has been ready.",
        ("type", "queue"),
    ),
    "jobqueue_stuck_jobs": ("Running jobs whose claim looks dead.", ()),
    "jobqueue_recently_finished_jobs": (
        "Jobs that ended in the last five minutes.",
        ("type", "status"),
    ),
    "jobqueue_paused": ("1 for each paused queue or type.", ("kind", "name")),
    "jobqueue_workers": ("Worker processes that reported lately.", ()),
    "jobqueue_worker_slots": ("Slots of these workers.", ()),
    "jobqueue_worker_slots_busy": ("Slots of these workers that run a job.", ()),
}
"""What is exposed: the name, what it tells, its labels."""

Sample = tuple[str, tuple[str, ...], float]


class JobQueueCollector(Collector):
    """Reads the queue when it is asked.

    `using`: the alias to read from, by default where the router reads `Job`. A database that does
    not answer makes a scrape with `jobqueue_up 0` and nothing else; collecting never raises for it.
    A connection that was not open before is closed after.
    """

    def __init__(self, using: str | None = None) -> None:
        self._using = using

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the families without samples, so that registering reads no database."""
        return [family(name) for name in FAMILIES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families as they are now."""
        using = self._using or router.db_for_read(Job)
        connection = connections[using]
        was_open = connection.connection is not None
        try:
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            samples = [("jobqueue_up", (), 1.0), *read(using)]
        except DatabaseFailure as error:
            logger.warning("The jobs table could not be read for Prometheus: %s", error)
            samples = [("jobqueue_up", (), 0.0)]
        finally:
            if not was_open:  # A server of its own makes a thread for every scrape.
                connection.close()
        families = {name: family(name) for name in FAMILIES}
        for name, labels, value in samples:
            families[name].add_metric(labels, value)
        yield from (found for found in families.values() if found.samples)


def family(name: str) -> GaugeMetricFamily:
    """Return a family of `FAMILIES` without samples."""
    documentation, labels = FAMILIES[name]
    return GaugeMetricFamily(name, documentation, labels=labels)


def read(using: str) -> Iterator[Sample]:
    """Yield what the database says; raises what it raises."""
    jobs = Job.objects.using(using)
    now = database_now(connections[using])
    yield from waiting_and_running(jobs, now)
    threshold = timedelta(seconds=settings.STUCK_THRESHOLD)
    yield "jobqueue_stuck_jobs", (), jobs.stuck(threshold, now=now).count()
    recent = jobs.terminal().filter(finished_at__gte=now - RECENTLY).order_by()
    ended = recent.values_list("type", "status").annotate(count=Count("pk"))
    for place, count in bounded({row[:2]: row[2] for row in ended}, keep_last=True).items():
        yield "jobqueue_recently_finished_jobs", place, count
    for kind, name in QueueControl.objects.using(using).values_list("kind", "name")[:MOST_PLACES]:
        yield "jobqueue_paused", (str(kind), name), 1
    alive = WorkerProcess.objects.using(using).filter(seen_at__gte=now - ALIVE_WITHIN)
    workers = alive.aggregate(count=Count("pk"), slots=Sum("slots"), busy=Sum("busy"))
    yield "jobqueue_workers", (), workers["count"]
    yield "jobqueue_worker_slots", (), workers["slots"] or 0
    yield "jobqueue_worker_slots_busy", (), workers["busy"] or 0


def waiting_and_running(jobs: Any, now: datetime) -> Iterator[Sample]:
    """Yield jobs by type, queue and state, and how long the oldest due ones have waited."""
    oldest: dict[Place, float] = {}
    states = {"ready": jobs.ready(), "scheduled": jobs.scheduled(), "running": jobs.running()}
    for state, found in states.items():
        grouped = found.order_by().values_list("type", "queue")
        counts: dict[Place, float] = {}
        for job_type, queue, count, ready_at in grouped.annotate(Count("pk"), Min("ready_at")):
            counts[job_type, queue] = count
            if state != "running" and ready_at <= now:
                age = (now - ready_at).total_seconds()
                oldest[job_type, queue] = max(age, oldest.get((job_type, queue), 0.0))
        for place, count in bounded(counts).items():
            yield "jobqueue_jobs", (*place, state), count
    for place, age in sorted(oldest.items(), key=lambda item: -item[1])[:MOST_PLACES]:
        yield "jobqueue_oldest_due_age_seconds", place, age


def bounded(counts: Mapping[Place, float], *, keep_last: bool = False) -> dict[Place, float]:
    """Return the largest counts, and the others added up as "other"."""
    largest = sorted(counts, key=lambda place: -counts[place])
    shown = {place: counts[place] for place in largest[:MOST_PLACES]}
    for place in largest[MOST_PLACES:]:
        rest = OTHER, place[1] if keep_last else OTHER
        shown[rest] = shown.get(rest, 0) + counts[place]
    return shown
