"""The filters and the transitions of jobs: no one else writes job state.

A transition is one conditional statement that reports whether it happened. Those made on behalf
of a claim match the job's id, the claim's token and `status = running`, so a worker that died,
stalled or was replaced changes nothing. Answers are keyed by claim token.

Every statement goes to the alias that the router names for writing `Job`, or to the one given
with `Job.objects.db_manager(alias)`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, Unpack, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import IntegrityError, connections, models, router, transaction
from django.db.models import Q
from django.db.models.functions import Now

from .database import ClaimOptions, ClaimRequest, QueueDatabase, Tables, queue_database
from .database.clock import database_now
from .states import (
    ACTIVE_STATUSES,
    TERMINAL_STATUSES,
    Claim,
    Decision,
    JobStatus,
    PauseKind,
    RetryResult,
    SettleOutcome,
)

if TYPE_CHECKING:
    from .enqueueing import EnqueueOptions, JobRequest
    from .models import Job

PROMOTE_BATCH = 1000


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
        return self.pending().filter(scheduled_for__lte=Now() if now is None else now)

    def running(self) -> Self:
        """Jobs that are claimed."""
        return self.filter(status=JobStatus.RUNNING)

    def active(self) -> Self:
        """Jobs that wait or run: what a dedup key is held against."""
        return self.filter(status__in=ACTIVE_STATUSES)

    def terminal(self) -> Self:
        """Jobs that never run again by themselves."""
        return self.filter(status__in=TERMINAL_STATUSES)

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


class JobManager(models.Manager["Job"]):
    """The transitions."""

    @property
    def write_alias(self) -> str:
        """The alias that every statement of the queue goes to."""
        return self._db or router.db_for_write(self.model)

    def on_write_alias(self) -> JobQuerySet:
        """All jobs, read where they are written: a replica may lag behind a claim."""
        return cast("JobQuerySet", self.get_queryset().using(self.write_alias))

    # Enqueue

    def enqueue(
        self,
        type: str,  # noqa: A002 (the contract's word)
        payload: Mapping[str, Any] | None = None,
        **options: "Unpack[EnqueueOptions]",
    ) -> "Job":
        """Insert one job and return it, or the active job that has its dedup key, untouched.

        Options: `queue` ("default"); `priority` (0; lower runs sooner); `subject`, a pair of
        type and id; `dedup_key`, by default type and subject where there is a subject;
        `skip_dedup` (no key at all); `scheduled_for` (datetime) or `delay` (timedelta or
        seconds); `reason`; `org_id`.

        The INSERT is part of the caller's transaction. Raises InvalidJob or InvalidPayload
        before any SQL, EnqueueConflict when a colliding job kept vanishing.
        """
        from . import enqueueing

        return enqueueing.enqueue(self, enqueueing.JobRequest(type, payload, **options))

    async def aenqueue(
        self,
        type: str,  # noqa: A002 (the contract's word)
        payload: Mapping[str, Any] | None = None,
        **options: "Unpack[EnqueueOptions]",
    ) -> "Job":
        """Do what `enqueue` does, from async code."""
        return await sync_to_async(self.enqueue)(type, payload, **options)

    def enqueue_many(self, requests: "Iterable[JobRequest]") -> "list[Job]":
        """Enqueue all requests or none; return their jobs in the order asked.

        Requests with one dedup key share one job. An error names the index of the bad request.
        """
        from . import enqueueing

        return enqueueing.enqueue_many(self, requests)

    def insert(self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> set[UUID]:
        """Insert the jobs whose dedup key is free; return their ids.

        A job in `delays` is scheduled that long after now. `enqueue` calls this; nothing else
        should, as nothing is checked here.
        """
        return self._database().insert(jobs, delays)

    # Claim, renew, settle

    def claim(
        self,
        tokens: Sequence[UUID],
        leases: Mapping[str, timedelta],
        **options: Unpack[ClaimOptions],
    ) -> "list[Job]":
        """Claim at most one job for each token, and return the jobs.

        `leases`: the types wanted and how long a claim of each holds. Options: `executor`
        ("server") and `node_id`; `workers`, who each token is for; `queues`, None for all;
        `max_attempts`, what is written on rows of a type; `hints`, which may speed up the search
        and never change what can be found.

        Jobs come by priority, lower first, then by age; scheduled and paused ones do not. The
        attempt is charged here. No tokens, types or queues: an empty list, without a query.
        """
        request = ClaimRequest(tokens, leases, **options)
        return self._database().settle_and_claim([], request)[1] if request else []

    def renew(self, claims: Iterable[Claim]) -> set[UUID]:
        """Extend the leases of the claims, each by what it was granted; return the tokens held.

        An expired lease that nobody reaped is renewed too: the token is the fence. A row that
        somebody has locked is not waited for; it counts as held while it carries the token.
        """
        asked = list(claims)
        if not asked:
            return set()
        renewed = self._database().renew(asked)
        if len(renewed) == len(asked):
            return renewed
        unrenewed = [claim.token for claim in asked if claim.token not in renewed]
        still_held = self.on_write_alias().claimed_with(unrenewed)
        return renewed | {
            claim.token for job in still_held.only("claim_token") if (claim := job.claim)
        }

    def settle(self, decisions: Iterable[Decision]) -> dict[UUID, SettleOutcome]:
        """Write how attempts ended; answer each claim token with what was recorded.

        `claim-lost`: the claim no longer held, and nothing changed. Settling again what was
        written before answers as the first time. A token without an answer belongs to a row that
        somebody has locked: send its decision again.
        """
        asked = once_each(decisions)
        written, _ = self._database().settle_and_claim(asked, None) if asked else (set(), [])
        return self._outcomes(asked, written)

    def settle_and_claim(
        self,
        decisions: Iterable[Decision],
        tokens: Sequence[UUID],
        leases: Mapping[str, timedelta],
        **options: Unpack[ClaimOptions],
    ) -> "tuple[dict[UUID, SettleOutcome], list[Job]]":
        """Settle and claim in one round trip: the outcomes of `settle`, the jobs of `claim`."""
        asked = once_each(decisions)
        request = ClaimRequest(tokens, leases, **options)
        if not asked and not request:
            return {}, []
        written, jobs = self._database().settle_and_claim(asked, request or None)
        return self._outcomes(asked, written), jobs

    def release(self, claims: Iterable[Claim]) -> set[UUID]:
        """Hand claims back: the jobs wait again, their attempt uncharged; return the tokens.

        Each gets an attempt row with the outcome `released`.
        """
        asked = list(claims)
        return self._database().release(asked) if asked else set()

    # What people and small loops do

    def promote(self, limit: int = PROMOTE_BATCH) -> int:
        """Make up to `limit` scheduled jobs ready whose time has come; return how many."""
        return self._database().promote(limit)

    def seconds_until_due(self) -> float | None:
        """Return in how many seconds the next scheduled job is due, by the database's clock.

        Zero or less: it is due. None: nothing is scheduled.
        """
        first = self.on_write_alias().scheduled().order_by("scheduled_for")
        due_at = first.values_list("scheduled_for", flat=True).first()
        if due_at is None:
            return None
        return (due_at - database_now(connections[self.write_alias])).total_seconds()

    def cancel(self, jobs: "Job | UUID | Iterable[Job | UUID]") -> set[UUID]:
        """Cancel those of the jobs that are pending; return their ids.

        A running job is left alone: its worker decides how it ends.
        """
        return {job_id for job_id in sorted(ids_of(jobs)) if self._cancel(job_id)}

    def retry(self, jobs: "Job | UUID | Iterable[Job | UUID]") -> dict[UUID, RetryResult]:
        """Make failed or cancelled jobs wait again with their counters reset; answer by id.

        A job in any other state is refused. Of two jobs with one dedup key the first wins; the
        other is reported as a duplicate, and the rest goes on.
        """
        return {job_id: self._retry(job_id) for job_id in ids_of(jobs)}

    def pause(self, kind: str, name: str, *, reason: str = "") -> bool:
        """Stop claims of a queue or a type until `resume`; False when it was paused already.

        `kind` is "queue" or "type". Running jobs finish.
        """
        controls = self._controls()
        _, created = controls.get_or_create(
            kind=PauseKind(kind),
            name=name,
            defaults={
                "reason": reason,
                "paused_at": database_now(connections[self.write_alias]),
            },
        )
        return created

    def resume(self, kind: str, name: str) -> bool:
        """Allow claims of a queue or a type again; False when it was not paused."""
        deleted, _ = self._controls().filter(kind=PauseKind(kind), name=name).delete()
        return bool(deleted)

    def _database(self) -> QueueDatabase:
        return queue_database(tables_of(self.model), self.write_alias)

    def _controls(self) -> models.QuerySet[Any]:
        return tables_of(self.model).control._default_manager.using(self.write_alias)

    def _cancel(self, job_id: UUID) -> bool:
        changed = (
            self.on_write_alias()
            .pending()
            .filter(pk=job_id)
            .update(
                status=JobStatus.CANCELLED,
                scheduled_for=None,
                finished_at=database_now(connections[self.write_alias]),
            )
        )
        return bool(changed)

    def _retry(self, job_id: UUID) -> RetryResult:
        alias = self.write_alias
        waiting = {
            "status": JobStatus.PENDING,
            "attempts": 0,
            "rate_limit_hits": 0,
            "rate_limited_at": None,
            "result": None,
            "scheduled_for": None,
            "started_at": None,
            "finished_at": None,
        }
        ended = Q(status__in=[JobStatus.FAILED, JobStatus.CANCELLED])
        try:
            with transaction.atomic(using=alias):
                now = database_now(connections[alias])
                job = self.on_write_alias().filter(ended, pk=job_id)
                changed = job.update(ready_at=now, **waiting)
        except IntegrityError:
            return RetryResult.DUPLICATE
        return RetryResult.RETRIED if changed else RetryResult.REFUSED

    def _outcomes(
        self, decisions: Sequence[Decision], written: set[UUID]
    ) -> dict[UUID, SettleOutcome]:
        outcomes = {d.claim.token: d.outcome for d in decisions if d.claim.token in written}
        unwritten = [d for d in decisions if d.claim.token not in written]
        if not unwritten:
            return outcomes
        outcomes |= self._look_alone(unwritten)
        for decision in unwritten:
            # Most locks are a claimer's that looked at an older snapshot, and gone by now.
            if decision.claim.token not in outcomes:
                written, _ = self._database().settle_and_claim([decision], None)
                outcomes |= dict.fromkeys(written, decision.outcome)
        return outcomes

    def _look_alone(self, decisions: Sequence[Decision]) -> dict[UUID, SettleOutcome]:
        """Say of decisions that were not written whether they were before, or lost their claim.

        A row that still runs under the token was only locked by somebody: it gets no answer.
        """
        job_ids = [decision.claim.job_id for decision in decisions]
        # Rows before attempts: a first write that commits in between is then seen by the second.
        rows = self.on_write_alias().in_bulk(job_ids)
        attempts = tables_of(self.model).attempt._default_manager.using(self.write_alias)
        recorded = dict(attempts.filter(job__in=job_ids).values_list("claim_token", "outcome"))
        outcomes = {}
        for decision in decisions:
            claim = decision.claim
            row = rows.get(claim.job_id)
            if recorded.get(claim.token) == decision.outcome or (row and succeeded(row, decision)):
                outcomes[claim.token] = decision.outcome
            elif row is None or row.claim_token != claim.token:
                outcomes[claim.token] = SettleOutcome.CLAIM_LOST
        return outcomes


def succeeded(job: "Job", decision: Decision) -> bool:
    """Whether the row is as this very attempt's success would have left it."""
    attempt = decision.attempt
    return (
        decision.outcome == job.status == JobStatus.SUCCEEDED
        and job.attempts == attempt.number
        and job.worker == attempt.worker
        and job.started_at == attempt.started_at
    )


def once_each(decisions: Iterable[Decision]) -> list[Decision]:
    """Return one decision for each claim: a repeat changes nothing."""
    return list({decision.claim.token: decision for decision in decisions}.values())


def ids_of(jobs: "Job | UUID | Iterable[Job | UUID]") -> list[UUID]:
    """Return the ids of one job or several, each once, in the order given."""
    if isinstance(jobs, UUID | models.Model):
        jobs = [jobs]
    ids = (job if isinstance(job, UUID) else job.pk for job in jobs)
    return list(dict.fromkeys(ids))


def tables_of(job_model: "type[Job]") -> Tables:
    """Return the models that belong to a job model."""
    get = apps.get_app_config(job_model._meta.app_label).get_model
    return Tables(job_model, get("JobAttempt"), get("QueueControl"))  # type: ignore[arg-type]
