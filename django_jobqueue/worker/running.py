"""The jobs that run in this process, each from its claim to the end of its attempt."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from .. import metrics
from ..job_context import CurrentJob
from ..models import Job
from ..states import Attempt, Claim, ErrorReport, SettleOutcome
from ..tracing import ProcessSpan, process_span
from .connections import cancel_statement

if TYPE_CHECKING:
    from .slot import Slot


class Running:
    """One attempt in this process.

    It ends once: by its handler, by its timeout, or because it is handed back. Whoever ends it
    first speaks for it; the others find `end()` False and keep quiet.
    """

    def __init__(self, job: Job, claim: Claim) -> None:
        self.job = job
        self.claim = claim
        # What the claim wrote, before a handler can touch the instance.
        self._about: CurrentJob | None = None
        self.job_type = job.type
        self.lease = timedelta(seconds=job.lease_seconds or 0)
        self.max_attempts = job.max_attempts
        self.rate_limit_hits = job.rate_limit_hits
        self._attempt = Attempt(job.attempts, job.worker, job.started_at)
        self.slot: Slot | None = None
        self.ceiling: timedelta | None = None
        self.deadline: float | None = None
        self.span: ProcessSpan | None = None
        self.ticket = 0
        """Of the throttle, from the start: what a success may say of its provider."""
        self.left = False
        """Whether the handler's code has left: perhaps long after the attempt ended."""
        self._interrupts: list[Callable[[], object]] = []
        self._connections: list[BaseDatabaseWrapper] = []
        self._ending = threading.Lock()
        self._ended = False
        self._claim_lost = False
        self._told = False

    @property
    def about(self) -> CurrentJob:
        """Which attempt this is; first asked for in the slot's thread, before the handler runs."""
        if self._about is None:
            self._about = CurrentJob.of(self.job)
        return self._about

    def attempt(self, error: ErrorReport | None = None) -> Attempt:
        """Return the attempt's record, with how it went wrong."""
        first = self._attempt
        return Attempt(first.number, first.worker, first.started_at, error)

    def end(self) -> bool:
        """End the attempt; True for the first caller, who now speaks for it."""
        with self._ending:
            first = not self._ended
            self._ended = True
            return first

    @property
    def ended(self) -> bool:
        """Whether somebody speaks for it already."""
        return self._ended

    def own_connections(self, wrappers: list[BaseDatabaseWrapper]) -> None:
        """Note the connections of the thread in which the handler's queries run."""
        self._connections = wrappers

    def interrupt_with(self, interrupt: Callable[[], object]) -> None:
        """Note how to interrupt the handler's code from another thread."""
        self._interrupts.append(interrupt)

    def interrupt(self) -> None:
        """Ask the handler's code to leave: cancel its task, and its running SQL statements."""
        for interrupt in self._interrupts:
            interrupt()
        for connection in self._connections:
            cancel_statement(connection)

    def stop_span(self) -> None:
        """Let the span end here in time, whatever the handler's code still does."""
        if self.span is not None:
            self.span.stop()

    def started(self) -> ProcessSpan:
        """Count the attempt, whose handler begins now; return its span, current in its block."""
        job = self.job
        waited = (job.started_at - job.ready_at).total_seconds() if job.started_at else None
        metrics.started(self.job_type, self.about.queue, waited)
        self.span = process_span(job)
        return self.span

    def tell_end(self, outcome: SettleOutcome, error: ErrorReport | None = None) -> None:
        """Send the span, and count what became of the attempt; the first call counts."""
        with self._ending:
            told, self._told = self._told, True
        if told:
            return
        seconds = None
        if self.span is not None:
            self.span.end(outcome, error)
            seconds = self.span.seconds
        metrics.settled(self.job_type, self.about.queue, outcome.value, seconds)
        if outcome is SettleOutcome.CLAIM_LOST and not self._claim_lost:
            metrics.claim_lost(self.job_type, self.about.queue)

    @property
    def claim_lost(self) -> bool:
        """Whether its claim is known to be lost, so that renewing it is useless."""
        return self._claim_lost

    def lose_claim(self) -> None:
        """Note that the claim is lost, and tell the handler."""
        self._claim_lost = True
        metrics.claim_lost(self.job_type, self.about.queue)
        self.tell_handler()

    def tell_handler(self) -> None:
        """Let the handler see that nobody waits for this attempt any more."""
        self.job.claim_lost = True


class RunningJobs:
    """A thread-safe set of attempts: in at the claim, out before the settle is sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_token: dict[UUID, Running] = {}

    def add(self, job: Job) -> Running | None:
        """Take in a job just claimed; None for one that is not claimed."""
        claim = job.claim
        if claim is None:
            return None
        running = Running(job, claim)
        with self._lock:
            self._by_token[claim.token] = running
        return running

    def remove(self, token: UUID) -> Running | None:
        """Let an attempt go, and return it; None when it is not here."""
        with self._lock:
            return self._by_token.pop(token, None)

    def get(self, token: UUID) -> Running | None:
        """Return the attempt of a claim, if it is still here."""
        return self._by_token.get(token)

    def all(self) -> list[Running]:
        """Return the attempts that are here now."""
        with self._lock:
            return list(self._by_token.values())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_token)
