"""The words and values that all layers share: states, outcomes, claims and decisions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

DEFAULT_QUEUE = "default"
LAST_ERROR_LENGTH = 2_000

COUNT_LIMIT = 10_000
"""Up to where jobs are counted for people: a number this high stands for it or more."""


class JobStatus(TextChoices):
    """Where a job is. A scheduled job is `pending` with `scheduled_for` set."""

    PENDING = "pending", _("pending")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


ACTIVE_STATUSES = (JobStatus.PENDING, JobStatus.RUNNING)
TERMINAL_STATUSES = (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)
RETRYABLE_STATUSES = (JobStatus.FAILED, JobStatus.CANCELLED)


class Executor(TextChoices):
    """Who runs, or last ran, a job. Never claimed is the empty string."""

    NONE = "", _("nobody yet")
    SERVER = "server", _("server")
    NODE = "node", _("node")


class SettleOutcome(TextChoices):
    """How an attempt ended."""

    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    RETRY_SCHEDULED = "retry-scheduled", _("retry scheduled")
    RATE_LIMIT_DEFERRED = "rate-limit-deferred", _("deferred by a rate limit")
    CANCELLED = "cancelled", _("cancelled")
    CLAIM_LOST = "claim-lost", _("claim lost")
    WRITE_FAILED = "write-failed", _("write failed")
    RELEASED = "released", _("released")
    REAPED = "reaped", _("reaped")


class WorkerMode(TextChoices):
    """What a worker claims: everything, what is not offered to nodes, or nothing."""

    ALL = "all", pgettext_lazy("worker mode", "all")
    SYSTEM = "system", pgettext_lazy("worker mode", "system")
    OFF = "off", pgettext_lazy("worker mode", "off")


class RetryResult(TextChoices):
    """What `retry` did with one job."""

    RETRIED = "retried", _("retried")
    REFUSED = "refused", _("refused: neither failed nor cancelled")
    DUPLICATE = "duplicate", _("refused: another active job has its dedup key")
    LOCKED = "locked", _("left alone: somebody has it locked")


class SkipReason(TextChoices):
    """Why a bulk transition left a job as it is."""

    RUNNING = "running", _("running")
    STATE = "state", _("in a state that this does not apply to")
    LOCKED = "locked", _("in use by another transaction")
    DUPLICATE = "duplicate", _("with a dedup key that another active job has")
    GONE = "gone", _("deleted meanwhile")


class StuckSignal(TextChoices):
    """What shows that nobody holds a running job any more."""

    LEASE_EXPIRED = "lease-expired", _("its lease expired")
    NO_LEASE = "no-lease", _("it has no lease and started long ago")
    NEVER_STARTED = "never-started", _("it has neither lease nor start and was created long ago")
    LEASE_TOO_FAR = "lease-too-far", _("its lease ends later than any renewal could have set it")


class PauseKind(TextChoices):
    """What a `QueueControl` row pauses."""

    QUEUE = "queue", _("queue")
    TYPE = "type", _("type")


class CatchUp(TextChoices):
    """What a schedule does about ticks that no worker was there for."""

    SKIP = "skip", _("skip them")
    ONCE = "once", _("one job for all of them")
    ALL = "all", _("one job for each, up to the limit")


class Claim(NamedTuple):
    """The exclusive hold of one executor on one job: valid while the row carries the token."""

    job_id: UUID
    token: UUID


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An exception in storable form: text without NUL and lone surrogates, capped."""

    exception_class: str
    message: str
    traceback: str = ""

    @property
    def last_error(self) -> str:
        """`ClassName: message`, as `Job.last_error` keeps it."""
        name = self.exception_class.rpartition(".")[2]
        return (f"{name}: {self.message}" if self.message else name)[:LAST_ERROR_LENGTH]


CLASS_OF_ERROR = r"\A([A-Za-z_][A-Za-z0-9_.]{0,199}:|[A-Z][A-Za-z0-9_.]{0,199}\Z)"
"""How a text begins that names a class, in words that PostgreSQL and Python understand alike.

A name alone begins with a capital letter: any other word may be a message.
"""


def error_class_of(last_error: str) -> str | None:
    """Return the class that a `last_error` names: empty without an error, None without a class.

    Everybody who may view jobs may know the class, and not a word more.
    """
    if last_error and not re.match(CLASS_OF_ERROR, last_error):
        return None
    return last_error.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a job, as the executor that ran it saw it.

    `number`, `worker` and `started_at` are what the claim wrote; together they let a repeated
    settle recognise its own first write.
    """

    number: int
    worker: str
    started_at: datetime | None
    error: ErrorReport | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """What a settle writes on the job beside ending its claim. None leaves a column as it is.

    `delay` belongs to `status = pending`: the job is due that long after the write, by the
    database's clock. `attempts` and `rate_limit_hits` are absolute values, so that writing them
    twice is writing them once.
    """

    status: JobStatus
    result: Any = None
    last_error: str | None = None
    delay: timedelta | None = None
    attempts: int | None = None
    rate_limit_hits: int | None = None
    rate_limited: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """How one claim ends: the outcome, the row's changes and the attempt's record.

    `trip`: how long the job's provider asked to be left alone; not written, for the executor.
    """

    claim: Claim
    outcome: SettleOutcome
    changes: Changes
    attempt: Attempt
    trip: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Reaped:
    """A job whose dead claim was ended: it waits again, or failed with its budget spent."""

    job_id: UUID
    job_type: str
    queue: str
    status: JobStatus
    attempts: int
    max_attempts: int
    worker: str
    signal: StuckSignal
    error: ErrorReport
    subject_type: str | None
    subject_id: str | None
    org_id: str | None

    @property
    def failed(self) -> bool:
        """Whether the job is terminal now."""
        return self.status is JobStatus.FAILED


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What a bulk transition did.

    `done`: how many jobs were changed. `reasons`: how many were left as they are, by why; of
    those in another state at most `COUNT_LIMIT` are counted. `remaining`: how many still match
    and were not tried; `COUNT_LIMIT` stands for that many or more. `error`: what the database
    refused after some were changed, which ended it; `remaining` is then at least that many.
    """

    done: int
    reasons: Mapping[SkipReason, int] = field(default_factory=dict)
    remaining: int = 0
    error: Exception | None = None

    @property
    def skipped(self) -> int:
        """How many jobs were left as they are, whatever the reason."""
        return sum(self.reasons.values())
