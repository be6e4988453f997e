"""The parameters of PostgreSQL's statements: arrays with an element a row."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ..hints import Span
from ..jsonvalues import encode
from ..states import Claim, Decision
from .arrays import array
from .base import ClaimRequest

if TYPE_CHECKING:
    from ..models import Job

Parameters = dict[str, Any]


def seconds(duration: timedelta | None) -> float | None:
    """Return a duration in seconds."""
    return None if duration is None else duration.total_seconds()


COLUMNS_OF_NEW = (
    "id", "type", "queue", "priority", "subject_type", "subject_id", "reason", "dedup_key",
    "trace_context", "org_id",
)  # fmt: skip


def values_of_new(job: "Job", delay: timedelta | None) -> Parameters:
    """Return the values of an INSERT of one job."""
    values: Parameters = {name: getattr(job, name) for name in COLUMNS_OF_NEW}
    return {
        **values,
        "scheduled_for": job.scheduled_for,
        "payload": encode(job.payload),
        "delay": seconds(delay),
    }


def columns_of_new(jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> Parameters:
    """Return the arrays of an INSERT, an element a job."""
    arrays: Parameters = {
        name: array(getattr(job, name) for job in jobs) for name in COLUMNS_OF_NEW
    }
    # The driver knows what a naive time means to the session.
    arrays["scheduled_for"] = [job.scheduled_for for job in jobs]
    arrays["payload"] = array(encode(job.payload) for job in jobs)
    arrays["delay"] = array(seconds(delays.get(job.id)) for job in jobs)
    return arrays


def columns_of_claims(claims: Sequence[Claim]) -> Parameters:
    """Return the arrays of a statement over claims, in the order in which rows are locked."""
    ordered = sorted(claims)
    return {
        "job_id": array(claim.job_id for claim in ordered),
        "token": array(claim.token for claim in ordered),
    }


def columns_of_request(request: ClaimRequest, spans: Sequence[Span]) -> Parameters:
    """Return the arrays of a claim: an element a token, a type, a span."""
    leases = request.leases
    return {
        **columns_of_terms(
            tuple(leases), tuple(leases.values()), tuple(map(request.max_attempts_of, leases))
        ),
        "executor": str(request.executor),
        "node_id": None if request.node_id is None else str(request.node_id),
        "permits": array(request.tokens),
        "workers": array(map(request.worker_for, request.tokens)),
        "queues": array_of_queues(request.queues),
        "chosen": None if request.ids is None else array(request.ids),
        "from_priority": array(span.priority for span in spans),
        "from_id": array(span.id for span in spans),
        "until_priority": array(span.until for span in spans),
    }


def array_of_queues(queues: Sequence[str] | None) -> str | None:
    """Return the array of the queues asked for, each once: a lane visited twice fills a search."""
    return None if queues is None else array(dict.fromkeys(queues))


@lru_cache(maxsize=64)
def columns_of_terms(
    types: tuple[str, ...], leases: tuple[timedelta, ...], max_attempts: tuple[int | None, ...]
) -> Mapping[str, str]:
    """Return the arrays with an element a type: they rarely change from claim to claim."""
    return {
        "types": array(types),
        "lease_seconds": array(map(timedelta.total_seconds, leases)),
        "max_attempts": array(max_attempts),
    }


def columns_of_successes(decisions: Sequence[Decision]) -> Parameters:
    """Return the arrays of a settle of successes, an element a decision."""
    results = [decision.changes.result for decision in decisions]
    return {
        "job_id": array(decision.claim.job_id for decision in decisions),
        "token": array(decision.claim.token for decision in decisions),
        "result": array(None if result is None else encode(result) for result in results),
    }


def columns_of_decisions(decisions: Sequence[Decision]) -> Parameters:
    """Return the arrays of a settle of any kind, an element a decision."""
    changes = [decision.changes for decision in decisions]
    errors = [decision.attempt.error for decision in decisions]
    return {
        **columns_of_successes(decisions),
        "outcome": array(str(decision.outcome) for decision in decisions),
        "status": array(str(change.status) for change in changes),
        "error": array(change.last_error for change in changes),
        "delay": array(seconds(change.delay) for change in changes),
        "attempts": array(change.attempts for change in changes),
        "hits": array(change.rate_limit_hits for change in changes),
        "limited": array(change.rate_limited for change in changes),
        "number": array(decision.attempt.number for decision in decisions),
        "exception_class": array(error.exception_class if error else "" for error in errors),
        "message": array(error.message if error else "" for error in errors),
        "traceback": array(error.traceback if error else "" for error in errors),
    }
