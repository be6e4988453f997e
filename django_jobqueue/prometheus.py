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

from django.db import connections, router
from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from . import insights
from .logs import get_logger
from .models import Job

logger = get_logger(__name__)

MOST_PLACES = 500
"""More combinations of type and queue than these are shown together, as "other"."""

OTHER = "other"

RECENTLY = timedelta(minutes=5)

STATES = ("ready", "scheduled", "running")

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

    `using`: the alias to read from, by default where the router reads `Job`. What keeps the rows
    from being read, a database that does not answer or a setting that cannot be used, makes a
    scrape with `jobqueue_up 0` and nothing else. Collecting never raises: the page of the scrape
    holds other metrics too. A connection that was not open before is closed after.
    """

    def __init__(self, using: str | None = None) -> None:
        self._using = using

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the families without samples, so that registering reads no database."""
        return [family(name) for name in FAMILIES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families as they are now."""
        try:
            samples = [("jobqueue_up", (), 1.0), *self._read()]
        except Exception as error:  # noqa: BLE001 (of the site's settings, router or driver)
            reason = f"{type(error).__name__}: {error}"
            logger.warning("The jobs table could not be read for Prometheus: %s", reason)
            samples = [("jobqueue_up", (), 0.0)]
        families = {name: family(name) for name in FAMILIES}
        for name, labels, value in samples:
            families[name].add_metric(labels, value)
        yield from (found for found in families.values() if found.samples)

    def _read(self) -> list[Sample]:
        using = self._using or router.db_for_read(Job)
        connection = connections[using]
        was_open = connection.connection is not None
        try:
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            return list(read(using))
        finally:
            if not was_open:  # A server of its own makes a thread for every scrape.
                connection.close()


def family(name: str) -> GaugeMetricFamily:
    """Return a family of `FAMILIES` without samples."""
    documentation, labels = FAMILIES[name]
    return GaugeMetricFamily(name, documentation, labels=labels)


def read(using: str) -> Iterator[Sample]:
    """Yield what the database says; raises what it raises."""
    now = insights.now(using)
    yield from waiting_and_running(now)
    yield "jobqueue_stuck_jobs", (), now.total.stuck
    for place, count in bounded(recently_finished(using, now.at), keep_last=True).items():
        yield "jobqueue_recently_finished_jobs", place, count
    for pause in now.pauses[:MOST_PLACES]:
        yield "jobqueue_paused", (pause.kind.value, pause.name), 1
    yield "jobqueue_workers", (), len(now.workers)
    yield "jobqueue_worker_slots", (), now.slots
    yield "jobqueue_worker_slots_busy", (), sum(worker.busy for worker in now.workers)


def waiting_and_running(now: insights.Now) -> Iterator[Sample]:
    """Yield jobs by type, queue and state, and how long the oldest due ones have waited."""
    for state in STATES:
        counts = {(lane.type, lane.queue): getattr(lane.tally, state) for lane in now.lanes}
        for place, count in bounded({p: c for p, c in counts.items() if c}).items():
            yield "jobqueue_jobs", (*place, state), count
    due = [lane for lane in now.lanes if lane.oldest_due_at is not None]
    due.sort(key=lambda lane: lane.oldest_due_at or now.at)
    for lane in due[:MOST_PLACES]:
        age = now.at - (lane.oldest_due_at or now.at)
        yield "jobqueue_oldest_due_age_seconds", (lane.type, lane.queue), age.total_seconds()


def recently_finished(using: str, at: datetime) -> Mapping[Place, float]:
    """Return how many jobs of each type ended lately, by how they ended."""
    recent = Job.objects.using(using).terminal().filter(finished_at__gte=at - RECENTLY)
    ended = recent.order_by().values_list("type", "status").annotate(count=Count("pk"))
    return {(job_type, status): count for job_type, status, count in ended}


def bounded(counts: Mapping[Place, float], *, keep_last: bool = False) -> dict[Place, float]:
    """Return the largest counts, and the others added up as "other"."""
    largest = sorted(counts, key=lambda place: -counts[place])
    shown = {place: counts[place] for place in largest[:MOST_PLACES]}
    for place in largest[MOST_PLACES:]:
        rest = OTHER, place[1] if keep_last else OTHER
        shown[rest] = shown.get(rest, 0) + counts[place]
    return shown
