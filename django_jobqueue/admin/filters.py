"""The filters of the list of jobs. Each is written for the indexes that serve it."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import connections
from django.db.models import Model, Q, Value
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..conf import stuck_threshold
from ..database.clock import database_clock
from ..ids import last_id_until
from ..managers import JobQuerySet
from ..states import TERMINAL_STATUSES, JobStatus
from .choices import Names
from .rows import ShownState

CLOCK_SLACK = timedelta(hours=1)
"""How far a process's clock may be from the database's before a filter misses its jobs."""

Choices = list[tuple[str, Any]]

READY = Q(status=JobStatus.PENDING, scheduled_for__isnull=True)
SCHEDULED = Q(status=JobStatus.PENDING, scheduled_for__isnull=False)
WAITING = READY | SCHEDULED
"""All pending jobs, said so that the indexes of both kinds can be used together."""

ACTIVE_PARTS = (READY, SCHEDULED, Q(status=JobStatus.RUNNING))
"""All jobs that are not terminal, each part with an index."""

STATES: dict[str, Callable[[JobQuerySet], JobQuerySet]] = {
    ShownState.PENDING: lambda jobs: jobs.filter(WAITING),
    ShownState.SCHEDULED: lambda jobs: jobs.scheduled(),
    ShownState.RUNNING: lambda jobs: jobs.running(),
    ShownState.STUCK: lambda jobs: jobs.stuck(stuck_threshold()),
    ShownState.SUCCEEDED: lambda jobs: jobs.filter(status=JobStatus.SUCCEEDED),
    ShownState.FAILED: lambda jobs: jobs.filter(status=JobStatus.FAILED),
    ShownState.CANCELLED: lambda jobs: jobs.filter(status=JobStatus.CANCELLED),
}


SERVED_STATES = frozenset(ShownState) - {ShownState.SUCCEEDED}
"""States whose jobs an index finds without the others."""


class StateFilter(admin.SimpleListFilter):
    """By what a job does. Scheduled jobs are pending too, and stuck ones are running."""

    title = _("state")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer every state."""
        parts = {
            ShownState.SCHEDULED: _("pending: scheduled"),
            ShownState.STUCK: _("running: stuck"),
        }
        return [(state.value, parts.get(state, state.label)) for state in ShownState]

    def queryset(self, request: HttpRequest, queryset: Any) -> JobQuerySet:
        """Return the jobs in the chosen state; refuse what is no state."""
        state = self.value()
        if state is None:
            return queryset  # type: ignore[no-any-return]
        if state not in STATES:
            raise IncorrectLookupParameters(f"{state!r} is no state of a job")
        return STATES[state](queryset)


class NameFilter(admin.SimpleListFilter):
    """By a name that jobs have, chosen from those that are known."""

    def __init__(
        self,
        names: Names,
        request: HttpRequest,
        params: dict[str, Any],
        model: type[Model],
        model_admin: Any,
    ) -> None:
        self.names = names
        super().__init__(request, params, model, model_admin)

    def queryset(self, request: HttpRequest, queryset: Any) -> JobQuerySet:
        """Return the jobs with the chosen name; refuse what no column can hold."""
        name = self.value()
        if name is None:
            return queryset  # type: ignore[no-any-return]
        if "\0" in name:
            raise IncorrectLookupParameters("a name holds no NUL")
        return queryset.filter(**{str(self.parameter_name): name})  # type: ignore[no-any-return]


class TypeFilter(NameFilter):
    """By type."""

    title = _("type")
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the types that are known here."""
        return [(name, name) for name in self.names.types(self.value())]


class QueueFilter(NameFilter):
    """By queue."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the queues that are known here."""
        return [(name, name) for name in self.names.queues(self.value())]


class ActivityFilter(admin.SimpleListFilter):
    """By when something last happened to a job: its end, or its creation while it has none."""

    title = _("time of activity")
    parameter_name = "activity"

    SINCE: ClassVar[dict[str, tuple[timedelta, Any]]] = {
        "hour": (timedelta(hours=1), _("last hour")),
        "day": (timedelta(days=1), _("last 24 hours")),
        "week": (timedelta(days=7), _("last 7 days")),
        "month": (timedelta(days=30), _("last 30 days")),
    }
    BEFORE: ClassVar[dict[str, tuple[timedelta, Any]]] = {
        "before-day": (timedelta(days=1), _("more than 24 hours ago")),
        "before-week": (timedelta(days=7), _("more than 7 days ago")),
        "before-month": (timedelta(days=30), _("more than 30 days ago")),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer times up to now, then times long ago."""
        both = (*self.SINCE.items(), *self.BEFORE.items())
        return [(name, label) for name, (_age, label) in both]

    def queryset(self, request: HttpRequest, queryset: Any) -> JobQuerySet:
        """Return the jobs of the chosen time, by the database's clock."""
        chosen = self.value()
        if chosen is None:
            return queryset  # type: ignore[no-any-return]
        now = database_clock(connections[queryset.db])
        if chosen in self.SINCE:
            age, _label = self.SINCE[chosen]
            return queryset.filter(moved("gte", now - Value(age)))  # type: ignore[no-any-return]
        if chosen in self.BEFORE:
            age, _label = self.BEFORE[chosen]
            jobs = queryset.filter(moved("lt", now - Value(age)))
            return jobs.filter(made_before(age))  # type: ignore[no-any-return]
        raise IncorrectLookupParameters(f"{chosen!r} is no time of activity")


def moved(lookup: str, moment: Any) -> Q:
    """Return the condition that `coalesce(finished_at, created_at)` compares to a moment like that.

    A terminal job has its end, any other has none: so each part is served by an index of its own.
    """
    ended = Q((f"finished_at__{lookup}", moment), status__in=TERMINAL_STATUSES)
    created = Q((f"created_at__{lookup}", moment))
    return Q(ended, *(part & created for part in ACTIVE_PARTS), _connector=Q.OR)


def made_before(age: timedelta) -> Q:
    """Return the condition that an id was made at least that long ago, give or take the slack.

    It follows from the job's creation, and lets the list begin where such jobs are, rather than
    pass all newer ones. Ids tell the clocks of the processes that made them.
    """
    return Q(pk__lte=last_id_until(time.time() - (age - CLOCK_SLACK).total_seconds()))
