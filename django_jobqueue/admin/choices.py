"""The types and queues to choose from, without reading the table of jobs for them.

What the newest jobs have, and what other places name: the registry, purged jobs, schedules, pauses.
A type or a queue that none of them names is still found by its address, and by the links in rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import F, QuerySet, Value
from django.utils.functional import cached_property

from .. import registry
from ..models import Job, JobStatsRollup, QueueControl, Schedule
from ..states import DEFAULT_QUEUE, PauseKind

NEWEST = 5_000
"""In so many of the newest jobs names are looked for."""

MOST_CHOICES = 40
"""So many names are offered."""


@dataclass
class Names:
    """What the types and queues are called that somebody may want to see."""

    jobs: QuerySet[Job]

    def types(self, chosen: str | None) -> list[str]:
        """Return the types to offer, sorted; the chosen one is among them."""
        others = chain_of(self._named(PauseKind.TYPE), registry.types())
        return offered(chosen, (job_type for job_type, _ in self._newest), others)

    def queues(self, chosen: str | None) -> list[str]:
        """Return the queues to offer, sorted; the chosen one is among them."""
        others = chain_of(self._named(PauseKind.QUEUE), (DEFAULT_QUEUE,))
        return offered(chosen, (queue for _, queue in self._newest), others)

    def _named(self, kind: PauseKind) -> Iterator[str]:
        return (name for named, name in self._elsewhere if named == kind)

    @cached_property
    def _newest(self) -> list[tuple[str, str]]:
        return list(self.jobs.order_by("-pk").values_list("type", "queue")[:NEWEST])

    @cached_property
    def _elsewhere(self) -> set[tuple[str, str]]:
        """Kinds and names from the small tables, in one query."""
        using = self.jobs.db
        a_type, a_queue = Value(PauseKind.TYPE.value), Value(PauseKind.QUEUE.value)
        schedules = Schedule.objects.using(using)
        paused = QueueControl.objects.using(using).values_list("kind", "name")
        purged = JobStatsRollup.objects.using(using).values_list(a_type, F("type"))
        types = schedules.values_list(a_type, F("type"))
        queues = schedules.values_list(a_queue, F("queue"))
        return set(paused.union(purged, types, queues))


def chain_of(*parts: Iterable[str]) -> Iterator[str]:
    """Return the names of all parts, one after the other."""
    return (name for part in parts for name in part)


def offered(chosen: str | None, newest: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return at most `MOST_CHOICES` names: the chosen one, the most frequent, then the others."""
    first = [] if not chosen else [chosen]
    frequent = [name for name, _ in Counter(newest).most_common()]
    names = list(dict.fromkeys([*first, *frequent, *sorted(others)]))
    return sorted(names[:MOST_CHOICES])
