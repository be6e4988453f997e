"""What the manager asks of a database, and what is the same on all of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypedDict
from uuid import UUID

from ..exceptions import WorkerDied
from ..hints import Hints, Position, Sight
from ..states import Executor

if TYPE_CHECKING:
    from ..models import Job, JobAttempt, JobStatsRollup, QueueControl
    from ..querysets import JobQuerySet
    from ..states import Claim, Decision, Reaped

DEATH_CLASS = f"{WorkerDied.__module__}.{WorkerDied.__qualname__}"
DEATH_MESSAGE = "attempt %s of %s did not end: its worker, %s, died or lost its claim (%s)"
"""What is recorded of a reaped attempt: its number, the budget, the worker and the signal."""

UNKNOWN_WORKER = "unknown"

DEDUP_COLUMN = "dedup_key"
"""What the unique violation of an active dedup key names, on every database."""


class Tables(NamedTuple):
    """The models whose tables the transitions touch."""

    job: "type[Job]"
    attempt: "type[JobAttempt]"
    control: "type[QueueControl]"
    rollup: "type[JobStatsRollup]"


class ClaimOptions(TypedDict, total=False):
    """The keyword arguments of `claim` and `settle_and_claim`."""

    executor: str
    node_id: UUID | None
    workers: Mapping[UUID, str] | None
    hints: Hints | Mapping[int, UUID] | None
    queues: Sequence[str] | None
    max_attempts: Mapping[str, int] | None
    ids: Sequence[UUID] | None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Who wants jobs, how many (one for each token), and of which types and queues."""

    tokens: Sequence[UUID]
    leases: Mapping[str, timedelta]
    executor: str = Executor.SERVER
    node_id: UUID | None = None
    workers: Mapping[UUID, str] | None = None
    hints: Hints | Mapping[int, UUID] | None = None
    queues: Sequence[str] | None = None
    max_attempts: Mapping[str, int] | None = None
    ids: Sequence[UUID] | None = None

    def __bool__(self) -> bool:
        """Whether anything could be claimed at all."""
        return bool(self.tokens and self.leases and (self.queues is None or self.queues))

    def worker_for(self, token: UUID) -> str:
        """Return who the token is for."""
        return (self.workers or {}).get(token, "")

    def max_attempts_of(self, job_type: str) -> int | None:
        """Return what to write on rows of a type; None leaves them as they are."""
        return (self.max_attempts or {}).get(job_type)


@dataclass(frozen=True, slots=True)
class ReapRequest:
    """When a claim is dead, by which time, and what becomes of its job; see `JobManager.reap`."""

    stuck_threshold: timedelta
    max_attempts: int
    as_of: datetime | None
    limit: int


def in_id_order(decisions: "Iterable[Decision]") -> "list[Decision]":
    """Return the decisions in the order in which every statement locks rows."""
    return sorted(decisions, key=lambda decision: decision.claim.job_id)


class QueueDatabase(Protocol):
    """The transitions that are written per database. Each is atomic and says what it changed."""

    def insert(self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> set[UUID]:
        """Insert the jobs, but those whose dedup key an active job has; return the ids inserted.

        A job in `delays` is scheduled that long after the insert. The times of the inserted
        instances are filled in as stored. The caller's transaction stays usable.
        """

    def settle_and_claim(
        self, decisions: "Sequence[Decision]", request: ClaimRequest | None
    ) -> "tuple[set[UUID], list[Job]]":
        """Write the decisions whose claim holds, claim jobs; return tokens written and jobs."""

    def renew(self, claims: "Sequence[Claim]") -> set[UUID]:
        """Extend the leases of the claims that hold and that nobody has locked."""

    def release(self, claims: "Sequence[Claim]") -> set[UUID]:
        """Return the claimed jobs to waiting with the attempt uncharged; return the tokens."""

    def look(
        self, types: Iterable[str], queues: Sequence[str] | None, levels: Iterable[int]
    ) -> Sight:
        """Return where the first takeable jobs of these types and queues (None: all) lie.

        At the most urgent level where there is one, and at each of `levels`.
        """

    def waiting_types(
        self, known: Collection[str], queues: Sequence[str] | None, limit: int
    ) -> "Sequence[tuple[str, str]]":
        """Return up to `limit` types that ready jobs of these queues (None: all) have.

        None of `known`. Each comes with the JSON text of the payload of one such job.
        """

    def promote(self, limit: int, ids: Sequence[UUID] | None = None) -> list[Position]:
        """Make up to `limit` scheduled jobs ready whose time has come; return where they lie.

        `ids`: only these; None for all.
        """

    def reap(self, jobs: "JobQuerySet", request: ReapRequest) -> "list[Reaped]":
        """End the dead claims among the jobs, the longest expired first.

        Each write asserts again that the job shows its signal. Rows that somebody has locked are
        left alone.
        """

    def erase(self, jobs: "JobQuerySet") -> dict[UUID, datetime | None]:
        """Delete those of the jobs that nobody has locked, with their attempts.

        Returns when each of them had ended, by its id; None for one that had not.
        In the same transaction the rollup counts the terminal ones among them. Asserts again
        what `jobs` asks for.
        """
