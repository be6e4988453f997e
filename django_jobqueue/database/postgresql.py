"""PostgreSQL: every transition is one statement.

Rows are locked first, in id order and with SKIP LOCKED, and only locked rows are changed: a row
that somebody holds stalls nobody, and two statements never wait for each other. Locking CTEs
are MATERIALIZED, since an inlined one may be evaluated once a row, and its LIMIT then limits
nothing. Conditions are literals and only values are parameters, so that the planner can match
the partial indexes.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Value
from django.db.models.functions import Coalesce

from ..exceptions import EnqueueConflict, WorkerDied
from ..hints import Position
from ..states import LAST_ERROR_LENGTH, Claim, ErrorReport, JobStatus, Reaped, StuckSignal
from . import search, statements
from .arrays import array
from .base import DEATH_CLASS, DEATH_MESSAGE, UNKNOWN_WORKER, ReapRequest
from .claiming import Claiming
from .columns import array_of_queues, columns_of_claims, columns_of_new, values_of_new
from .errors import is_conflict
from .session import Row, ValuesQuerySet, compiled, full_text

if TYPE_CHECKING:
    from ..models import Job
    from ..querysets import JobQuerySet


Times: TypeAlias = dict[UUID, tuple[Any, Any]]
"""When each inserted job is scheduled for, and when it was created."""

MOST_UNKNOWN_HOPS = 10_000
"""How many types that wait in other queues alone are passed over."""


class PostgreSQL(Claiming):
    """The transitions on one PostgreSQL alias."""

    def insert(self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> set[UUID]:
        """Insert the jobs whose dedup key is free; one statement."""
        stored = self._insert(jobs, delays, blindly=not self._in_transaction)
        left = [job for job in jobs if job.id not in stored]
        if left and self._in_transaction and not self._sees_commits():
            stored |= self._insert_in_savepoint(left, delays)
        for job in jobs:
            if job.id in stored:
                job.scheduled_for, job.created_at = stored[job.id]
                job.ready_at = job.scheduled_for or job.created_at
                job._state.adding, job._state.db = False, self.using  # noqa: SLF001 (as save does)
        return set(stored)

    def renew(self, claims: Sequence[Claim]) -> set[UUID]:
        """Extend each lease by what its claim granted; one statement."""
        text = full_text(self.tables, statements.RENEW)
        return {token for (token,) in self.fetch(text, columns_of_claims(claims))}

    def release(self, claims: Sequence[Claim]) -> set[UUID]:
        """Hand the jobs back, with an attempt row each; one statement."""
        return {token for (token,) in self.rows(statements.RELEASE, columns_of_claims(claims))}

    def waiting_types(
        self, known: Collection[str], queues: Sequence[str] | None, limit: int
    ) -> Sequence[Row]:
        """Hop from type to type; one statement."""
        one = search.ONE_OF_ALL_QUEUES if queues is None else search.ONE_OF_QUEUES
        parameters = {
            "known": array(known),
            "queues": array_of_queues(queues),
            "limit": limit,
            "most_hops": len(known) + MOST_UNKNOWN_HOPS,
        }
        return self.fetch(full_text(self.tables, search.WAITING_TYPES, one=one), parameters)

    def promote(self, limit: int, ids: Sequence[UUID] | None = None) -> list[Position]:
        """Make due jobs ready; one statement."""
        of_jobs = "" if ids is None else "AND id = ANY (%(chosen)s::uuid[])"
        text = full_text(self.tables, statements.PROMOTE, of_jobs=of_jobs)
        rows = self.fetch(text, {"limit": limit, "chosen": array(ids or ())})
        return [Position(*row) for row in rows]

    def reap(self, jobs: "JobQuerySet", request: ReapRequest) -> list[Reaped]:
        """End dead claims, with an attempt row each; one statement."""
        stuck = jobs.stuck(request.stuck_threshold, request.as_of)
        budget = Coalesce("max_attempts", Value(request.max_attempts))
        columns = ("id", "claim_token", "attempts", "worker", "signal")
        oldest = stuck.order_by("lease_expires_at", "id").values(*columns, budget=budget)
        parameters = {
            "message": DEATH_MESSAGE,
            "unknown": UNKNOWN_WORKER,
            "name": WorkerDied.__name__,
            "class": DEATH_CLASS,
            "error_length": LAST_ERROR_LENGTH,
        }
        pick = self._locking(oldest[: request.limit], no_key=True)
        return [reaped_from(row) for row in self.rows(statements.REAP, parameters, pick)]

    def erase(self, jobs: "JobQuerySet") -> dict[UUID, datetime | None]:
        """Delete jobs and their attempts, and count them in the rollup; one statement."""
        pick = self._locking(jobs.values("id", "status"), no_key=False)
        return dict(self.rows(statements.ERASE, {}, pick))

    def _locking(self, jobs: "ValuesQuerySet", *, no_key: bool) -> str:
        """Return a SELECT that locks what nobody has locked, as text with its values in it."""
        pick = jobs.select_for_update(skip_locked=True, no_key=no_key)
        return compiled(pick, self.using)

    @property
    def _in_transaction(self) -> bool:
        return self.connection.in_atomic_block

    def _sees_commits(self) -> bool:
        """Whether the caller's transaction sees what others committed after it began."""
        [(level,)] = self.rows("SHOW transaction_isolation", {})
        return level in {"read committed", "read uncommitted"}

    def _insert(
        self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta], *, blindly: bool
    ) -> Times:
        if len(jobs) == 1:
            sql, parameters = statements.INSERT_ONE, values_of_new(jobs[0], delays.get(jobs[0].id))
        else:
            # Two callers that insert the same keys in the same order cannot deadlock.
            ordered = sorted(jobs, key=lambda job: job.dedup_key or "")
            sql, parameters = statements.INSERT_MANY, columns_of_new(ordered, delays)
        return times_of(self.rows(sql, {**parameters, "blindly": blindly}))

    def _insert_in_savepoint(
        self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]
    ) -> Times:
        """Insert where a collision with a job that is not to be seen ends the transaction."""
        try:
            with transaction.atomic(using=self.using):
                return self._insert(jobs, delays, blindly=True)
        except OperationalError as error:
            if not is_conflict(error):
                raise
            raise EnqueueConflict(
                "An active job with this dedup key was committed after this transaction began, "
                "and its isolation level hides that job. Enqueue again in a new transaction."
            ) from error


def times_of(rows: Sequence[Row]) -> Times:
    """Return when each inserted job is scheduled for, and when all of them were created."""
    created_at = next((moment for *_, moment in rows if moment is not None), None)
    return {job_id: (scheduled_for, created_at) for job_id, scheduled_for, _ in rows}


def reaped_from(row: Sequence[Any]) -> Reaped:
    """Return what a row that REAP returned says."""
    job_id, job_type, queue, status, attempts, budget, worker, signal, message, *about = row
    return Reaped(
        job_id,
        job_type,
        queue,
        JobStatus(status),
        attempts,
        budget,
        worker,
        StuckSignal(signal),
        ErrorReport(DEATH_CLASS, message),
        *about,
    )
