"""Every other database: a short transaction around guarded ORM updates.

Serves SQLite, and is written for MySQL 8 and MariaDB. Rows are locked where the database can
(`select_for_update(skip_locked=True)`); everywhere each UPDATE repeats its condition and counts
its rows, so a lost race changes nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, connections, transaction
from django.db.models import Case, F, TextField, When
from django.db.models.functions import Cast

from ..hints import Position, Sight
from ..states import (
    TERMINAL_STATUSES,
    Claim,
    Decision,
    ErrorReport,
    Executor,
    JobStatus,
    Reaped,
    SettleOutcome,
    StuckSignal,
)
from .base import (
    DEATH_CLASS,
    DEATH_MESSAGE,
    DEDUP_COLUMN,
    UNKNOWN_WORKER,
    ClaimRequest,
    ReapRequest,
    Tables,
    in_id_order,
)
from .clock import database_now
from .errors import retry_conflicts

if TYPE_CHECKING:
    from ..models import Job
    from ..querysets import JobQuerySet

Answer = TypeVar("Answer")


class Portable:
    """The transitions on one alias of any database."""

    def __init__(self, tables: Tables, using: str) -> None:
        self.tables = tables
        self.using = using
        self.connection = connections[using]

    def insert(self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> set[UUID]:
        """Insert all jobs at once; one by one when a dedup key among them is taken."""

        def run() -> set[UUID]:
            now = database_now(self.connection)
            for job in jobs:
                if job.id in delays:
                    job.scheduled_for = now + delays[job.id]
                job.created_at = now
                job.ready_at = job.scheduled_for or now
            if self._insert(jobs):
                return {job.id for job in jobs}
            return {job.id for job in jobs if self._insert([job])}

        return self._transaction(run)

    def settle_and_claim(
        self, decisions: Sequence[Decision], request: ClaimRequest | None
    ) -> "tuple[set[UUID], list[Job]]":
        """Settle, then claim, in one transaction."""

        def run() -> "tuple[set[UUID], list[Job]]":
            now = database_now(self.connection)
            written = {d.claim.token for d in in_id_order(decisions) if self._settle(d, now)}
            return written, self._claim(request, now) if request else []

        return self._transaction(run)

    def renew(self, claims: Sequence[Claim]) -> set[UUID]:
        """Extend each lease by what its claim granted."""

        def run() -> set[UUID]:
            now = database_now(self.connection)
            return {
                claim.token for claim, job in self._held(claims) if self._renew(claim, job, now)
            }

        return self._transaction(run)

    def release(self, claims: Sequence[Claim]) -> set[UUID]:
        """Hand the jobs back, with an attempt row each."""

        def run() -> set[UUID]:
            now = database_now(self.connection)
            held = self._held(claims)
            return {claim.token for claim, job in held if self._release(claim, job, now)}

        return self._transaction(run)

    def look(
        self,
        types: Iterable[str],  # noqa: ARG002 (of the protocol)
        queues: Sequence[str] | None,  # noqa: ARG002
        levels: Iterable[int],  # noqa: ARG002
    ) -> Sight:
        """Return nothing: a claim here searches everything, whatever the hints."""
        return Sight()

    def waiting_types(
        self, known: Collection[str], queues: Sequence[str] | None, limit: int
    ) -> list[tuple[str, str]]:
        """Return them by one scan of the ready jobs, and one more for each type found."""
        ready = self._jobs().ready().order_by()
        if queues is not None:
            ready = ready.filter(queue__in=queues)
        payload = Cast("payload", TextField())
        # Known types are left out here: there may be more than a statement takes as parameters.
        types = ready.values_list("type", flat=True).distinct()[: len(known) + limit]
        unknown = [name for name in types if name not in known][:limit]
        firsts = (ready.filter(type=name).values_list("type", payload)[:1] for name in unknown)
        return [row for rows in firsts for row in rows]

    def promote(self, limit: int, ids: Sequence[UUID] | None = None) -> list[Position]:
        """Make due jobs ready."""

        def run() -> list[Position]:
            now = database_now(self.connection)
            asked = self._jobs() if ids is None else self._jobs().filter(pk__in=ids)
            due = self._locked(asked.due(now).order_by("scheduled_for")[:limit])
            places = [Position(job.priority, job.pk) for job in due.only("priority")]
            found = [place.id for place in places]
            promoted = self._jobs().due(now).filter(pk__in=found).update(scheduled_for=None)
            return places[:promoted]

        return self._transaction(run)

    def reap(self, jobs: "JobQuerySet", request: ReapRequest) -> list[Reaped]:
        """End dead claims, with an attempt row each."""

        def run() -> list[Reaped]:
            now = database_now(self.connection)
            stuck = jobs.stuck(request.stuck_threshold, request.as_of, now)
            oldest = self._locked(stuck.order_by("lease_expires_at", "pk")[: request.limit])
            verdicts = [(job, verdict_on(job, request.max_attempts)) for job in oldest]
            return [reaped for job, reaped in verdicts if self._reap(stuck, job, reaped, now)]

        return self._transaction(run)

    def erase(self, jobs: "JobQuerySet") -> dict[UUID, datetime | None]:
        """Delete jobs and their attempts, and count them in the rollup."""

        def run() -> dict[UUID, datetime | None]:
            doomed = list(self._locked(jobs.defer("payload", "result")))
            ids = [job.pk for job in doomed]
            self.tables.attempt._default_manager.using(self.using).filter(job__in=ids).delete()
            # QuerySet.delete() would look the rows up again and delete them by id alone.
            erased = sum(
                self._jobs().filter(pk__in=ids, status=status)._raw_delete(self.using)  # noqa: SLF001
                for status in {job.status for job in doomed}
            )
            if erased != len(doomed):
                raise transaction.TransactionManagementError(
                    f"{len(doomed)} jobs were locked and {erased} deleted: the database does not "
                    "keep locked rows from changing. Nothing was deleted."
                )
            self._count(doomed)
            return {job.pk: job.finished_at for job in doomed}

        return self._transaction(run)

    def _transaction(self, run: Callable[[], Answer]) -> Answer:
        def atomically() -> Answer:
            with transaction.atomic(using=self.using):
                return run()

        return retry_conflicts(self.connection, atomically)

    def _jobs(self) -> "JobQuerySet":
        return self.tables.job._default_manager.using(self.using)

    def _locked(self, jobs: "JobQuerySet") -> "JobQuerySet":
        if self.connection.features.has_select_for_update_skip_locked:
            return jobs.select_for_update(skip_locked=True)
        return jobs

    def _held(self, claims: Iterable[Claim]) -> "list[tuple[Claim, Job]]":
        asked = set(claims)
        ids = {claim.job_id for claim in asked}
        running = self._locked(self._jobs().running().filter(pk__in=ids).order_by("pk"))
        return [(job.claim, job) for job in running if job.claim in asked]

    def _insert(self, jobs: "Sequence[Job]") -> bool:
        """Insert the jobs; False, with nothing inserted, when a dedup key is taken."""
        try:
            with transaction.atomic(using=self.using):
                self._jobs().bulk_create(jobs)
        except IntegrityError as error:
            if DEDUP_COLUMN in str(error):
                return False
            raise
        return True

    def _settle(self, decision: Decision, now: datetime) -> bool:
        held = self._held([decision.claim])
        changes = assignments(decision, now)
        if not held or not self._jobs().holding(decision.claim).update(**changes):
            return False
        if decision.outcome is not SettleOutcome.SUCCEEDED:
            _, job = held[0]
            self._record(
                job,
                now,
                number=decision.attempt.number,
                outcome=decision.outcome,
                error=decision.attempt.error,
            )
        return True

    def _renew(self, claim: Claim, job: "Job", now: datetime) -> bool:
        lease = job.lease_seconds
        expiry = None if lease is None else now + timedelta(seconds=lease)
        return bool(self._jobs().holding(claim).update(lease_expires_at=expiry))

    def _release(self, claim: Claim, job: "Job", now: datetime) -> bool:
        released = (
            self._jobs()
            .holding(claim)
            .update(
                status=JobStatus.PENDING,
                attempts=Case(When(attempts__gt=0, then=F("attempts") - 1), default=0),
                scheduled_for=None,
                ready_at=now,
                claim_token=None,
                lease_expires_at=None,
            )
        )
        if released:
            self._record(job, now, number=job.attempts, outcome=SettleOutcome.RELEASED)
        return bool(released)

    def _reap(self, stuck: "JobQuerySet", job: "Job", reaped: Reaped, now: datetime) -> bool:
        ended: dict[str, Any] = {
            "status": reaped.status,
            "scheduled_for": None,
            "claim_token": None,
            "lease_expires_at": None,
        }
        if reaped.failed:
            ended |= {"finished_at": now, "last_error": reaped.error.last_error}
        else:
            ended |= {"finished_at": None, "ready_at": now}
        if not stuck.filter(pk=job.pk, claim_token=job.claim_token).update(**ended):
            return False
        outcome = SettleOutcome.REAPED
        self._record(job, now, number=job.attempts, outcome=outcome, error=reaped.error)
        return True

    def _count(self, erased: "Iterable[Job]") -> None:
        rollups = self.tables.rollup._default_manager.using(self.using)
        for job_type, totals in sorted(totals_by_type(erased).items()):
            rollups.get_or_create(type=job_type)
            added = {column: F(column) + number for column, number in totals.items()}
            rollups.filter(type=job_type).update(**added)

    def _record(
        self, job: "Job", now: datetime, *, number: int, outcome: SettleOutcome, error: Any = None
    ) -> None:
        self.tables.attempt._default_manager.using(self.using).create(
            job_id=job.pk,
            number=number,
            outcome=outcome,
            started_at=job.started_at,
            finished_at=now,
            executor=job.executor,
            worker=job.worker,
            claim_token=job.claim_token,
            exception_class=error.exception_class if error else "",
            message=error.message if error else "",
            traceback=error.traceback if error else "",
        )

    def _claim(self, request: ClaimRequest, now: datetime) -> "list[Job]":
        ready = self._jobs().ready().filter(type__in=request.leases)
        if request.queues is not None:
            ready = ready.filter(queue__in=request.queues)
        if request.ids is not None:
            ready = ready.filter(pk__in=request.ids)
        pick = self._locked(ready.not_paused().order_by("priority", "id")[: len(request.tokens)])
        taken = zip(pick, request.tokens, strict=False)
        return [job for job, token in taken if self._take(job, token, request, now)]

    def _take(self, job: "Job", token: UUID, request: ClaimRequest, now: datetime) -> bool:
        lease = request.leases[job.type]
        granted = {
            "status": JobStatus.RUNNING,
            "attempts": job.attempts + 1,
            "max_attempts": request.max_attempts_of(job.type) or job.max_attempts,
            "executor": Executor(request.executor),
            "node_id": request.node_id,
            "worker": request.worker_for(token),
            "claim_token": token,
            "started_at": now,
            "lease_seconds": lease.total_seconds(),
            "lease_expires_at": now + lease,
        }
        still_ready = self._jobs().ready().filter(pk=job.pk, attempts=job.attempts)
        if not still_ready.update(**granted):
            return False
        for name, value in granted.items():
            setattr(job, name, value)
        return True


def verdict_on(job: "Job", max_attempts: int) -> Reaped:
    """Return what becomes of a job whose claim is dead."""
    budget = max_attempts if job.max_attempts is None else job.max_attempts
    signal = StuckSignal(job.signal)  # type: ignore[attr-defined]
    message = DEATH_MESSAGE % (job.attempts, budget, job.worker or UNKNOWN_WORKER, signal.value)
    return Reaped(
        job.pk,
        job.type,
        job.queue,
        JobStatus.PENDING if job.attempts < budget else JobStatus.FAILED,
        job.attempts,
        budget,
        job.worker,
        signal,
        ErrorReport(DEATH_CLASS, message),
        job.subject_type,
        job.subject_id,
        job.org_id,
    )


def totals_by_type(jobs: "Iterable[Job]") -> dict[str, Counter[str]]:
    """Return what the terminal ones among the jobs add to the rollup of each type."""
    totals: dict[str, Any] = defaultdict(Counter)
    for job in jobs:
        if job.status not in TERMINAL_STATUSES:
            continue
        totals[job.type][f"{job.status}_count"] += 1
        if job.status == JobStatus.SUCCEEDED and job.started_at and job.finished_at:
            seconds = (job.finished_at - job.started_at).total_seconds()
            if seconds >= 0:
                totals[job.type].update(duration_sum=seconds, duration_samples=1)
    return totals


def assignments(decision: Decision, now: datetime) -> dict[str, Any]:
    """Return what a settle writes on the row: column to value."""
    changes = decision.changes
    columns: dict[str, Any] = {
        "status": changes.status,
        "claim_token": None,
        "lease_expires_at": None,
        "scheduled_for": None,
        "finished_at": now,
    }
    if changes.status is JobStatus.PENDING:
        due = now + (changes.delay or timedelta(0))
        columns |= {
            "scheduled_for": due if changes.delay is not None else None,
            "ready_at": due,
            "finished_at": None,
        }
    if changes.status is JobStatus.SUCCEEDED:
        columns["result"] = changes.result
    if changes.last_error is not None:
        columns["last_error"] = changes.last_error
    if changes.attempts is not None:
        columns["attempts"] = changes.attempts
    if changes.rate_limit_hits is not None:
        columns["rate_limit_hits"] = changes.rate_limit_hits
    if changes.rate_limited:
        columns["rate_limited_at"] = now
    return columns
