"""PostgreSQL: every transition is one statement.

Rows are locked first, in id order and with SKIP LOCKED, and only locked rows are changed: a row
that somebody holds stalls nobody, and two statements never wait for each other. Locking CTEs
are MATERIALIZED, since an inlined one may be evaluated once a row, and its LIMIT then limits
nothing. Conditions are literals and only values are parameters, so that the planner can match
the partial indexes.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.db import OperationalError, connections, transaction
from django.db.models import F, Lookup, QuerySet, Value
from django.db.models.functions import Coalesce

from ..exceptions import EnqueueConflict, WorkerDied
from ..jsonvalues import encode
from ..states import (
    LAST_ERROR_LENGTH,
    Claim,
    Decision,
    ErrorReport,
    JobStatus,
    Reaped,
    StuckSignal,
)
from . import statements
from .base import DEATH_CLASS, DEATH_MESSAGE, UNKNOWN_WORKER, ClaimRequest, ReapRequest, Tables
from .errors import is_conflict, retry_conflicts

if TYPE_CHECKING:
    from ..models import Job
    from ..querysets import JobQuerySet

Parameters = Mapping[str, Any]
ValuesQuerySet: TypeAlias = "QuerySet[Job, Any]"


class PostgreSQL:
    """The transitions on one PostgreSQL alias."""

    def __init__(self, tables: Tables, using: str) -> None:
        self.tables = tables
        self.using = using
        self.connection = connections[using]

    def insert(self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> set[UUID]:
        """Insert the jobs whose dedup key is free; one statement."""
        # Two callers that insert the same keys in the same order cannot deadlock.
        ordered = sorted(jobs, key=lambda job: job.dedup_key or "")
        parameters = columns_of_new(ordered, delays)
        rows = self._rows(statements.INSERT, {**parameters, "blindly": not self._in_transaction})
        if len(rows) < len(jobs) and self._in_transaction and not self._sees_commits():
            rows += self._insert_in_savepoint(parameters)
        stored = {row[0]: row[1:] for row in rows}
        for job in jobs:
            if job.id in stored:
                job.created_at, job.ready_at, job.scheduled_for = stored[job.id]
                job._state.adding, job._state.db = False, self.using  # noqa: SLF001 (as save does)
        return set(stored)

    def settle_and_claim(
        self, decisions: Sequence[Decision], request: ClaimRequest | None
    ) -> "tuple[set[UUID], list[Job]]":
        """Settle, claim, or both; one statement."""
        if not decisions:
            return set(), self._claim(request) if request else []
        if not request:
            sql = f"WITH {statements.SETTLE} {statements.SETTLED}"
            return {token for (token,) in self._rows(sql, columns_of_decisions(decisions))}, []

        sql = f"WITH {statements.SETTLE}, {statements.CLAIM} {statements.SETTLED_AND_CLAIMED}"
        parameters = {**columns_of_decisions(decisions), **columns_of_request(request)}
        rows = self._rows(sql, parameters, pick=self._pick(request))
        tokens = {token for token, *_ in rows if token is not None}
        return tokens, [self._job(row[2:]) for row in rows if row[1] is not None]

    def renew(self, claims: Sequence[Claim]) -> set[UUID]:
        """Extend each lease by what its claim granted; one statement."""
        return {token for (token,) in self._rows(statements.RENEW, columns_of_claims(claims))}

    def release(self, claims: Sequence[Claim]) -> set[UUID]:
        """Hand the jobs back, with an attempt row each; one statement."""
        return {token for (token,) in self._rows(statements.RELEASE, columns_of_claims(claims))}

    def promote(self, limit: int) -> int:
        """Make due jobs ready; one statement."""
        sql = self._text(statements.PROMOTE)

        def run() -> int:
            with self.connection.cursor() as cursor:
                cursor.execute(sql, {"limit": limit})
                return int(cursor.rowcount)

        return retry_conflicts(self.connection, run)

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
        return [reaped_from(row) for row in self._rows(statements.REAP, parameters, pick)]

    def erase(self, jobs: "JobQuerySet") -> list[UUID]:
        """Delete jobs and their attempts, and count them in the rollup; one statement."""
        pick = self._locking(jobs.values("id", "status"), no_key=False)
        return [job_id for (job_id,) in self._rows(statements.ERASE, {}, pick)]

    def _locking(self, jobs: "ValuesQuerySet", *, no_key: bool) -> str:
        """Return a SELECT that locks what nobody has locked, as text with its values in it."""
        pick = jobs.select_for_update(skip_locked=True, no_key=no_key)
        return compiled(pick, self.using).replace("%", "%%")

    def _claim(self, request: ClaimRequest) -> "list[Job]":
        sql = f"WITH {statements.CLAIM} {statements.CLAIMED}"
        rows = self._rows(sql, columns_of_request(request), pick=self._pick(request))
        return [self._job(row[1:]) for row in rows]

    @property
    def _in_transaction(self) -> bool:
        return self.connection.in_atomic_block

    def _sees_commits(self) -> bool:
        """Whether the caller's transaction sees what others committed after it began."""
        [(level,)] = self._rows("SHOW transaction_isolation", {})
        return level in {"read committed", "read uncommitted"}

    def _insert_in_savepoint(self, parameters: Parameters) -> list[tuple[Any, ...]]:
        """Insert where a collision with a job that is not to be seen ends the transaction."""
        try:
            with transaction.atomic(using=self.using):
                return self._rows(statements.INSERT, {**parameters, "blindly": True})
        except OperationalError as error:
            if not is_conflict(error):
                raise
            raise EnqueueConflict(
                "An active job with this dedup key was committed after this transaction began, "
                "and its isolation level hides that job. Enqueue again in a new transaction."
            ) from error

    def _pick(self, request: ClaimRequest) -> str:
        return compiled_pick(
            self.tables,
            self.using,
            len(request.tokens),
            with_queues=request.queues is not None,
        )

    def _text(self, sql: str, pick: str = "") -> str:
        return sql.format(
            job=quoted(self.tables.job),
            attempt=quoted(self.tables.attempt),
            rollup=quoted(self.tables.rollup),
            columns=columns(self.tables.job),
            pick=pick,
        )

    def _rows(self, sql: str, parameters: Parameters, pick: str = "") -> list[tuple[Any, ...]]:
        text = self._text(sql, pick)

        def run() -> list[tuple[Any, ...]]:
            with self.connection.cursor() as cursor:
                cursor.execute(text, parameters)
                return list(cursor.fetchall())

        return retry_conflicts(self.connection, run)

    def _job(self, row: Sequence[Any]) -> "Job":
        fields = self.tables.job._meta.concrete_fields
        values = [
            field.from_db_value(value, None, self.connection)
            if hasattr(field, "from_db_value")
            else value
            for field, value in zip(fields, row, strict=True)
        ]
        return self.tables.job.from_db(self.using, [field.attname for field in fields], values)


class AnyOf(Lookup):
    """`column = ANY(%(name)s)`: the same text for any number of values.

    The right side is the name of a psycopg parameter, filled in when the statement runs.
    """

    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """Compile with the percent sign doubled: the ORM's own parameters are composed first."""
        column, params = self.process_lhs(compiler, connection)
        return f"{column} = ANY(%%({self.rhs})s::text[])", params


@cache
def compiled_pick(tables: Tables, using: str, limit: int, *, with_queues: bool) -> str:
    """Return the locking SELECT of a claim as text; compiled once for each number of rows."""
    jobs = tables.job._default_manager.using(using).ready().filter(AnyOf(F("type"), "types"))
    if with_queues:
        jobs = jobs.filter(AnyOf(F("queue"), "queues"))
    pick = (
        jobs.not_paused()
        .order_by("priority", "id")
        .select_for_update(skip_locked=True, no_key=True)
        .values("id", "type", "priority")[:limit]
    )
    return compiled(pick, using)


def compiled(pick: "ValuesQuerySet", using: str) -> str:
    """Return a locking SELECT of the ORM as text."""
    operations: Any = connections[using].ops
    with transaction.atomic(using=using):  # The ORM compiles a locking SELECT only inside one.
        sql, params = pick.query.get_compiler(using).as_sql()
        return str(operations.compose_sql(sql, params))


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


@cache
def quoted(model: Any) -> str:
    """Return the quoted table name of a model."""
    return f'"{model._meta.db_table}"'


@cache
def columns(model: Any) -> str:
    """Return the columns of a model in the order of its fields, for the table alias `job`."""
    return ", ".join(f'job."{field.column}"' for field in model._meta.concrete_fields)


def seconds(duration: timedelta | None) -> float | None:
    """Return a duration in seconds."""
    return None if duration is None else duration.total_seconds()


def columns_of_new(jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> Parameters:
    """Return the arrays of an INSERT, an element a job."""
    names = (
        "id", "type", "queue", "priority", "subject_type", "subject_id", "reason", "dedup_key",
        "scheduled_for", "trace_context", "org_id",
    )  # fmt: skip
    arrays: dict[str, Any] = {name: [getattr(job, name) for job in jobs] for name in names}
    arrays["payload"] = [encode(job.payload) for job in jobs]
    arrays["delay"] = [seconds(delays.get(job.id)) for job in jobs]
    return arrays


def columns_of_claims(claims: Sequence[Claim]) -> Parameters:
    """Return the arrays of a statement over claims."""
    return {
        "job_id": [claim.job_id for claim in claims],
        "token": [claim.token for claim in claims],
    }


def columns_of_request(request: ClaimRequest) -> Parameters:
    """Return the arrays of a claim: an element a token, and an element a type."""
    return {
        "executor": request.executor,
        "node_id": request.node_id,
        "permits": list(request.tokens),
        "workers": [request.worker_for(token) for token in request.tokens],
        "types": list(request.leases),
        "lease_seconds": [lease.total_seconds() for lease in request.leases.values()],
        "max_attempts": [request.max_attempts_of(job_type) for job_type in request.leases],
        "queues": None if request.queues is None else list(request.queues),
    }


def columns_of_decisions(decisions: Sequence[Decision]) -> Parameters:
    """Return the arrays of a settle, an element a decision."""
    changes = [decision.changes for decision in decisions]
    errors = [decision.attempt.error for decision in decisions]
    return {
        **columns_of_claims([decision.claim for decision in decisions]),
        "outcome": [str(decision.outcome) for decision in decisions],
        "status": [str(change.status) for change in changes],
        "result": [None if c.result is None else encode(c.result) for c in changes],
        "error": [change.last_error for change in changes],
        "delay": [seconds(change.delay) for change in changes],
        "attempts": [change.attempts for change in changes],
        "hits": [change.rate_limit_hits for change in changes],
        "limited": [change.rate_limited for change in changes],
        "number": [decision.attempt.number for decision in decisions],
        "exception_class": [error.exception_class if error else "" for error in errors],
        "message": [error.message if error else "" for error in errors],
        "traceback": [error.traceback if error else "" for error in errors],
    }
