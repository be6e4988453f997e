"""The exchange: the one thread of a worker that claims and settles, for all its slots.

Slots know one call, `swap`. Each round takes what is waiting, sends it as one statement and
answers every slot by itself; nobody waits for a round to fill, and no row is claimed without a
free slot behind it.

What happens when the database does not answer is decided here too. A decision is kept and sent
again every second; a claim of unknown fate is looked up by its token, so that nothing stays
claimed and forgotten.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

from django.db import DatabaseError, connections
from django.db import Error as DatabaseFailure

from ..database.errors import is_conflict, is_refusal
from ..managers import JobManager
from ..models import Job
from ..states import Changes, Claim, Decision, JobStatus, SettleOutcome
from .eligibility import Eligibility
from .held import HeldClaims
from .loops import Loop
from .reports import report_of

if TYPE_CHECKING:
    from ..database import ClaimOptions

logger = logging.getLogger(__name__)

RESEND_SECONDS = 1.0
FIRST_RESEND_SECONDS = 0.02
LEASES_BEFORE_GIVING_UP = 10
UNKNOWN_CLAIM_SECONDS = 60.0
"""How long after a lost connection a cut claim may still turn out to have been committed."""

OnSettled = Callable[[Decision, SettleOutcome], None]


class Swapped(NamedTuple):
    """The answer to `swap`. The outcome is None without a decision, or while it is kept."""

    outcome: SettleOutcome | None
    job: Job | None


NOTHING = Swapped(None, None)


@dataclass(slots=True, eq=False)
class Request:
    """What one slot wants: settle this, give me the next."""

    worker: str
    decision: Decision | None
    token: UUID | None
    lease: timedelta = timedelta(0)
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Swapped = NOTHING

    def reply(self, answer: Swapped) -> None:
        """Let the slot go on."""
        self.answer = answer
        self.answered.set()


@dataclass(slots=True, eq=False)
class Kept:
    """A decision until it is written: when to send it next, and until when to try."""

    decision: Decision
    give_up_at: float
    send_at: float = 0.0
    pause: float = FIRST_RESEND_SECONDS

    def postpone(self) -> None:
        """Send again later: soon at first, then every second."""
        self.send_at = time.monotonic() + self.pause
        self.pause = min(self.pause * 2, RESEND_SECONDS)


class Seat:
    """One slot's place at the exchange."""

    def __init__(self, exchange: "Exchange", worker: str) -> None:
        self.worker = worker
        self._exchange = exchange

    def swap(self, decision: Decision | None, *, want_next: bool) -> Swapped:
        """Hand in how the last job ended and get the next one; waits for the answer."""
        return self._exchange.swap(Request(self.worker, decision, uuid4() if want_next else None))


class Exchange(Loop):
    """Speaks to the jobs table for all slots.

    `stopping`: set when nothing more is to be claimed. `budget`: the most jobs to claim, or
    None; `on_exhausted` is called once when it is spent. `on_settled` is called for every
    decision with what became of it.
    """

    def __init__(
        self,
        manager: JobManager,
        eligibility: Eligibility,
        stopping: threading.Event,
        *,
        budget: int | None,
        on_settled: OnSettled,
        on_exhausted: Callable[[], None],
    ) -> None:
        super().__init__("exchange", threading.Event())
        self.held = HeldClaims()
        self.released: set[UUID] = set()
        self._manager = manager
        self._eligibility = eligibility
        self._stopping = stopping
        self._budget = budget
        self._on_settled = on_settled
        self._on_exhausted = on_exhausted
        self._inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._waiting: list[Request] = []
        self._kept: dict[UUID, Kept] = {}
        self._unknown: dict[UUID, float] = {}
        self._to_release: list[Claim] = []
        self._pause_until = 0.0

    # Called by slots and by the pool

    def seat(self, worker: str) -> Seat:
        """Return a place for the slot named `worker`."""
        return Seat(self, worker)

    def swap(self, request: Request) -> Swapped:
        """Send a request and wait for its answer."""
        if request.decision is not None:
            held = self.held.remove(request.decision.claim.token)
            request.lease = held.lease if held else timedelta(0)
        self._inbox.put(request)
        while not request.answered.wait(timeout=RESEND_SECONDS):
            if not self.is_alive():
                return NOTHING
        return request.answer

    def wake(self) -> None:
        """Have a look at `stopping` now."""
        self._inbox.put(None)

    def shut_down(self, release: list[Claim], timeout: float) -> bool:
        """Write what is kept, release the claims as the last statement, and end the thread.

        Waits at most `timeout` seconds; returns whether the thread has ended. Idempotent.
        """
        if self.ident is None:
            return True
        self._to_release = release
        self.halt.set()
        self.wake()
        self.join(timeout)
        return not self.is_alive()

    @property
    def unwritten(self) -> int:
        """How many decisions wait to be written."""
        return len(self._kept)

    # The thread

    def step(self) -> bool:
        """Wait for something to do and do a round."""
        self._collect()
        if self._stopping.is_set():
            self._dismiss()
        if time.monotonic() >= self._pause_until and not self.halt.is_set():
            try:
                self._round()
            except Exception as error:  # noqa: BLE001 (logged there)
                self._recover(error)
        self._give_up()
        return not self.halt.is_set()

    def ended(self) -> None:
        """Say the last words to the database, and let every slot go that still waits."""
        try:
            self._last_statements()
        except Exception:
            logger.exception("The last statements of the worker failed")
        for kept in list(self._kept.values()):
            self._report(kept.decision, SettleOutcome.WRITE_FAILED)
        for request in self._waiting:
            request.reply(NOTHING)

    def _collect(self) -> None:
        """Take every request that is there, waiting for one if there is nothing else to do."""
        try:
            request = self._inbox.get(timeout=self._patience())
            while True:
                if request is not None:
                    self._admit(request)
                request = self._inbox.get_nowait()
        except queue.Empty:
            pass

    def _patience(self) -> float | None:
        """Return how long to wait for a request: until the next resend; None for ever."""
        if not (self._waiting or self._kept or self._unknown):
            return None
        due = [kept.send_at for kept in self._kept.values()]
        if self._unknown:
            due.append(time.monotonic() + RESEND_SECONDS)
        next_at = max(min(due, default=0.0), self._pause_until)
        return max(next_at - time.monotonic(), 0.0)

    def _admit(self, request: Request) -> None:
        self._waiting.append(request)
        if request.decision is not None:
            patience = request.lease.total_seconds() * LEASES_BEFORE_GIVING_UP
            token = request.decision.claim.token
            self._kept[token] = Kept(request.decision, time.monotonic() + patience)

    def _dismiss(self) -> None:
        """Let slots go that only wait for a job, as no more are claimed."""
        for request in self._waiting:
            request.token = None
            if request.decision is None:
                request.reply(NOTHING)
        self._waiting = [request for request in self._waiting if not request.answered.is_set()]

    def _round(self) -> None:
        """Send what is there and answer everyone."""
        found = self._find_unknown_claims()
        now = time.monotonic()
        due = [kept.decision for kept in self._kept.values() if kept.send_at <= now]
        if not due and not self._waiting:
            return
        wanting = [request for request in self._waiting if request.token is not None]
        wanting = wanting[: self._budget]
        given = dict(zip(wanting, found, strict=False))
        outcomes, jobs = self._send(due, wanting[len(found) :])

        for decision in due:
            token = decision.claim.token
            if token in outcomes:
                self._report(decision, outcomes[token])
            else:  # Somebody has locked the row.
                self._kept[token].postpone()
        by_token = {job.claim_token: job for job in jobs}
        given |= {r: by_token[r.token] for r in wanting if r.token in by_token}
        self._answer(outcomes, given)

    def _send(
        self, decisions: list[Decision], wanting: list[Request]
    ) -> tuple[dict[UUID, SettleOutcome], list[Job]]:
        terms = self._eligibility.terms()
        tokens = [request.token for request in wanting if request.token is not None]
        options: ClaimOptions = {
            "workers": {request.token: request.worker for request in wanting if request.token},
            "queues": terms.queues,
            "max_attempts": terms.max_attempts,
        }
        try:
            return self._manager.settle_and_claim(decisions, tokens, terms.leases, **options)
        except Exception as error:
            if not decisions or not is_refusal(error):
                raise
        outcomes: dict[UUID, SettleOutcome] = {}
        for decision in decisions:
            outcomes |= self._settle_alone(decision)
        return outcomes, self._manager.claim(tokens, terms.leases, **options)

    def _settle_alone(self, decision: Decision) -> dict[UUID, SettleOutcome]:
        """Settle one decision; as a failure with the reason if the database refuses its content."""
        try:
            return self._manager.settle([decision])
        except Exception as error:
            if not is_refusal(error):
                raise
            logger.exception("The database refused how job %s ended", decision.claim.job_id)
            refused = failed_for(decision, error)
        self._kept[decision.claim.token].decision = refused
        return self._manager.settle([refused])

    def _answer(self, outcomes: dict[UUID, SettleOutcome], given: dict[Request, Job]) -> None:
        for job in given.values():
            self.held.add(job)
            if job.claim_token is not None:
                self._unknown.pop(job.claim_token, None)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            token = request.decision.claim.token if request.decision else None
            outcome = outcomes.get(token) if token else None
            request.reply(Swapped(outcome, given.get(request)))
        if self._budget is not None and given:
            self._budget -= len(given)
            if self._budget <= 0:
                self._on_exhausted()

    def _report(self, decision: Decision, outcome: SettleOutcome) -> None:
        kept = self._kept.pop(decision.claim.token, None)
        self._on_settled(kept.decision if kept else decision, outcome)

    # When the database does not answer

    def _recover(self, error: Exception) -> None:
        """Forget the connection, note claims of unknown fate, and try again in a second."""
        now = time.monotonic()
        if isinstance(error, DatabaseError) and is_conflict(error):
            # Nothing was written and the connection is fine: others were faster, several times.
            self._pause_until = now + FIRST_RESEND_SECONDS
            return
        for request in self._waiting:
            if request.token is not None:
                self._unknown[request.token] = now + UNKNOWN_CLAIM_SECONDS
                request.token = uuid4()
        self._pause_until = now + RESEND_SECONDS
        logger.error(
            "The exchange could not reach the jobs table; it tries again in %g s: %s",
            RESEND_SECONDS,
            str(error).strip(),
            exc_info=not isinstance(error, DatabaseFailure),
        )
        try:
            connections[self._manager.write_alias].close()
        except Exception:
            logger.debug("The broken connection could not be closed", exc_info=True)

    def _find_unknown_claims(self) -> list[Job]:
        """Return jobs that a cut claim statement claimed after all, one for each slot that waits.

        Any others are released uncharged.
        """
        if not self._unknown:
            return []
        found = list(self._manager.on_write_alias().claimed_with(self._unknown))
        wanted = sum(request.token is not None for request in self._waiting)
        surplus = [claim for job in found[wanted:] if (claim := job.claim)]
        for token in self._manager.release(surplus):
            del self._unknown[token]
        now = time.monotonic()
        self._unknown = {token: until for token, until in self._unknown.items() if until > now}
        return found[:wanted]

    def _give_up(self) -> None:
        """Leave to the reaper what could not be written for ten leases."""
        now = time.monotonic()
        for kept in [kept for kept in self._kept.values() if kept.give_up_at < now]:
            self._report(kept.decision, SettleOutcome.WRITE_FAILED)

    def _last_statements(self) -> None:
        while not self._inbox.empty():
            request = self._inbox.get()
            if request is not None:
                self._admit(request)
        self._dismiss()
        decisions = [kept.decision for kept in self._kept.values()]
        if decisions:
            outcomes, _ = self._send(decisions, [])
            for decision in decisions:
                if decision.claim.token in outcomes:
                    self._report(decision, outcomes[decision.claim.token])
        self.released = self._manager.release(self._to_release)


def failed_for(decision: Decision, error: Exception) -> Decision:
    """Return the failure that stands for a decision whose content the database refuses."""
    report = report_of(error)
    changes = Changes(JobStatus.FAILED, last_error=report.last_error)
    return replace(
        decision,
        outcome=SettleOutcome.FAILED,
        changes=changes,
        attempt=replace(decision.attempt, error=report),
    )
