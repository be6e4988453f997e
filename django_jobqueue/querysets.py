"""The words for sets of jobs: filters, and nothing that writes."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django.apps import apps
from django.db import connections, models
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Cast, Coalesce, Least
from django.db.models.lookups import GreaterThan

from .database import Tables
from .database.clock import database_clock
from .database.expressions import Seconds
from .jsonvalues import decode
from .states import (
    ACTIVE_STATUSES,
    COUNT_LIMIT,
    RETRYABLE_STATUSES,
    TERMINAL_STATUSES,
    Claim,
    JobStatus,
    PauseKind,
    StuckSignal,
)

if TYPE_CHECKING:
    from .models import Job

MOMENT = models.DateTimeField()

LEASE_SLACK_SECONDS = 60.0
"""How much further out than one renewal a lease may be before nobody can have written it."""

LONGEST_LEASE_SECONDS = 1e9
"""A damaged `lease_seconds` counts as no more than this, so that it cannot break a statement."""


class JobQuerySet(models.QuerySet["Job"]):
    """The words for sets of jobs."""

    def pending(self) -> Self:
        """Jobs that wait, whether ready or scheduled."""
        return self.filter(status=JobStatus.PENDING)

    def ready(self) -> Self:
        """Jobs that may be claimed now, pauses aside."""
        return self.pending().filter(scheduled_for__isnull=True)

    def scheduled(self) -> Self:
        """Jobs that wait for their time, due or not, until they are promoted."""
        return self.pending().filter(scheduled_for__isnull=False)

    def due(self, now: datetime | None = None) -> Self:
        """Scheduled jobs whose time has come, by `now` or by the database's clock."""
        moment = database_clock(connections[self.db]) if now is None else now
        return self.pending().filter(scheduled_for__lte=moment)

    def running(self) -> Self:
        """Jobs that are claimed."""
        return self.filter(status=JobStatus.RUNNING)

    def active(self) -> Self:
        """Jobs that wait or run: what a dedup key is held against."""
        return self.filter(status__in=ACTIVE_STATUSES)

    def terminal(self) -> Self:
        """Jobs that never run again by themselves."""
        return self.filter(status__in=TERMINAL_STATUSES)

    def retryable(self) -> Self:
        """Jobs that may be made to wait again: failed or cancelled ones."""
        return self.filter(status__in=RETRYABLE_STATUSES)

    def with_taken_key(self) -> Self:
        """Of ended jobs, those whose dedup key an active job has."""
        return self.filter(self._key_is_taken())

    def with_free_key(self) -> Self:
        """Of ended jobs, those without a dedup key or with one that no active job has."""
        return self.exclude(self._key_is_taken())

    def deletable(self) -> Self:
        """Jobs that nobody runs."""
        return self.exclude(status=JobStatus.RUNNING)

    def payloads(self, limit: int) -> list[Any]:
        """Return the payloads of up to `limit` of the jobs, None for one Python cannot read."""
        texts = self.values_list(Cast("payload", models.TextField()), flat=True)[:limit]
        return [decode(text) for text in texts]

    def count_up_to(self, limit: int = COUNT_LIMIT) -> int:
        """Return how many there are, but count no further than `limit`."""
        return self.order_by()[:limit].count()

    def stuck(
        self, threshold: timedelta, as_of: datetime | None = None, now: datetime | None = None
    ) -> Self:
        """Running jobs that show a reaper signal, annotated with it as `signal`.

        `threshold` is how long a running job may be without a lease. `now` is by default the
        database's clock. What must have passed must have passed by `as_of`, by default `now`.
        """
        clock = database_clock(connections[self.db]) if now is None else Value(now, MOMENT)
        signals = stuck_signals(threshold, clock if as_of is None else Value(as_of, MOMENT), clock)
        shown = Case(
            *(When(condition, then=Value(signal.value)) for signal, condition in signals.items()),
            default=Value(""),
            output_field=models.CharField(),
        )
        any_signal = Q(*signals.values(), _connector=Q.OR)
        return self.running().filter(any_signal).annotate(signal=shown)

    def finished_before(
        self,
        moment: datetime,
        *,
        types: Iterable[str] | None = None,
        except_types: Iterable[str] = (),
    ) -> Self:
        """Terminal jobs that ended before a moment.

        `types`: only of these, None for all; and of none of `except_types`.
        """
        jobs = self.terminal().filter(finished_at__lt=moment)
        if types is not None:
            jobs = jobs.filter(type__in=list(types))
        spared = list(except_types)
        return jobs.exclude(type__in=spared) if spared else jobs

    def holding(self, claim: Claim) -> Self:
        """The job of a claim, if the claim still holds."""
        return self.running().filter(pk=claim.job_id, claim_token=claim.token)

    def claimed_with(self, tokens: Iterable[UUID]) -> Self:
        """Running jobs whose claim carries one of the tokens."""
        return self.running().filter(claim_token__in=list(tokens))

    def about(self, subject_type: str, subject_id: object) -> Self:
        """Jobs about one subject."""
        return self.filter(subject_type=subject_type, subject_id=str(subject_id))

    def not_paused(self) -> Self:
        """Jobs whose queue and type are not paused."""
        paused = tables_of(self.model).control._default_manager.using(self.db)
        queues = paused.filter(kind=PauseKind.QUEUE).values("name")
        types = paused.filter(kind=PauseKind.TYPE).values("name")
        return self.exclude(queue__in=queues).exclude(type__in=types)

    def takeable(self, types: Iterable[str], queues: Iterable[str] | None = None) -> Self:
        """Ready jobs that a worker of these types and queues (None: all) may claim."""
        jobs = self.ready().not_paused().filter(type__in=list(types))
        return jobs if queues is None else jobs.filter(queue__in=list(queues))

    def _key_is_taken(self) -> Q:
        keyed = self.model._default_manager.using(self.db).active().exclude(dedup_key=None)
        if connections[self.db].vendor == "postgresql":
            return Q(Exists(keyed.filter(dedup_key=OuterRef("dedup_key"))))
        # All keys at once: SQLite takes a partial index only for literals, so none serves one key.
        return Q(dedup_key__in=keyed.values("dedup_key"))


def stuck_signals(threshold: timedelta, as_of: Any, now: Any) -> Mapping[StuckSignal, Q]:
    """Return what each reaper signal means for a running job, by two expressions for moments."""
    long_ago = as_of - Value(threshold)
    no_lease = Q(lease_expires_at__isnull=True)
    granted = Coalesce("lease_seconds", Value(threshold.total_seconds()))
    longest = Seconds(Least(granted, Value(LONGEST_LEASE_SECONDS)) + LEASE_SLACK_SECONDS)
    return {
        StuckSignal.LEASE_EXPIRED: Q(lease_expires_at__lt=as_of),
        StuckSignal.NO_LEASE: no_lease & Q(started_at__lt=long_ago),
        StuckSignal.NEVER_STARTED: no_lease & Q(started_at__isnull=True, created_at__lt=long_ago),
        StuckSignal.LEASE_TOO_FAR: Q(GreaterThan(F("lease_expires_at") - now, longest)),
    }


@cache
def tables_of(job_model: "type[Job]") -> Tables:
    """Return the models that belong to a job model."""
    get = apps.get_app_config(job_model._meta.app_label).get_model
    models = get("JobAttempt"), get("QueueControl"), get("JobStatsRollup")
    return Tables(job_model, *models)  # type: ignore[arg-type]
