"""The exchange: the one thread of a worker that claims and settles, for all its slots.

Slots know one call, `swap`. Each round takes what is waiting, sends it as one statement and
answers every slot by itself; nobody waits for a round to fill, and no row is claimed without a
free slot behind it.

What happens when the database does not answer is decided here too. A decision is kept and sent
again every second; a claim of unknown fate is looked up by its token, so that nothing stays
claimed and forgotten.
"""

import math
import queue
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from django.db import DatabaseError, DataError
from django.db import Error as DatabaseFailure

from ..database.errors import is_conflict, is_refusal
from ..hints import Hints
from ..logs import get_logger
from ..managers import JobManager, JobQuerySet
from ..models import Job
from ..states import Claim, SettleOutcome
from ..wakeups import WakeUp, announce
from .eligibility import Eligibility
from .loops import Loop
from .queue_connection import forget_connection
from .requests import (
    FIRST_RESEND_SECONDS,
    NOTHING,
    RESEND_SECONDS,
    Kept,
    Listener,
    Request,
    Seat,
    Settled,
    Swapped,
)
from .running import Running, RunningJobs
from .settling import Outcomes, settle_alone

if TYPE_CHECKING:
    from ..database import ClaimOptions

logger = get_logger(__name__)

LEASES_BEFORE_GIVING_UP = 10
FALLBACK_LEASE = timedelta(minutes=1)
UNKNOWN_CLAIM_SECONDS = 60.0
"""How long after the database answers again a cut claim may still turn out to be committed."""


class Exchange(Loop):
    """Speaks to the jobs table for all slots.

    `stopping`: set when nothing more is to be claimed. `budget`: the most jobs to claim, or
    None for any number.
    """

    def __init__(
        self,
        manager: JobManager,
        eligibility: Eligibility,
        stopping: threading.Event,
        *,
        budget: int | None,
        listener: Listener,
    ) -> None:
        super().__init__("exchange", threading.Event(), using=manager.write_alias)
        self.running = RunningJobs()
        self.hints = Hints()
        self.released: set[UUID] = set()
        self.claims = 0
        self._manager = manager
        self._eligibility = eligibility
        self._stopping = stopping
        self._budget = budget
        self._listener = listener
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
            request.finished = self.running.remove(request.decision.claim.token)
        self._inbox.put(request)
        while (answer := request.wait(RESEND_SECONDS)) is None:
            if not self.is_alive():
                return NOTHING
        return answer

    def wake(self) -> None:
        """Have a look at `stopping` now."""
        self._inbox.put(None)

    def shut_down(self, timeout: float) -> bool:
        """Write what is kept, hand back what runs as the last statement, and end the thread.

        Waits at most `timeout` seconds; returns whether the thread has ended. Idempotent.
        """
        if self.ident is None:
            return True
        self.halt.set()
        self.wake()
        self.join(timeout)
        return not self.is_alive()

    def unwritten(self) -> list[Running]:
        """Return the attempts whose settle is delayed; their claims are still renewed."""
        kept = list(self._kept.values())
        return [k.finished for k in kept if k.delayed and k.finished is not None]

    @property
    def all_written(self) -> bool:
        """Whether no decision waits to be written."""
        return not self._kept

    def release_soon(self, claim: Claim) -> None:
        """Hand one claim back, uncharged, with the next round."""
        self._to_release.append(claim)
        self.wake()

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
            self._report(kept, SettleOutcome.WRITE_FAILED)
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
            lease = request.finished.lease if request.finished else FALLBACK_LEASE
            give_up_at = time.monotonic() + lease.total_seconds() * LEASES_BEFORE_GIVING_UP
            token = request.decision.claim.token
            self._kept[token] = Kept(request.decision, request.finished, give_up_at)

    def _dismiss(self) -> None:
        """Let slots go that only wait for a job, as no more are claimed."""
        for request in self._waiting:
            request.token = None
            if request.decision is None:
                request.reply(NOTHING)
        self._waiting = [request for request in self._waiting if request.answer is None]

    def _round(self) -> None:
        """Send what is there and answer everyone."""
        found = self._find_unknown_claims()
        now = time.monotonic()
        due = [kept for kept in self._kept.values() if kept.send_at <= now]
        self._release_some()
        if not due and not self._waiting:
            return
        wanting = [request for request in self._waiting if request.token is not None]
        wanting = wanting[: self._budget]
        given = dict(zip(wanting, found, strict=False))
        begun = time.monotonic()
        outcomes, jobs = self._send(due, wanting[len(found) :])
        seconds = time.monotonic() - begun

        settled = {}
        for kept in due:
            token = kept.decision.claim.token
            if token in outcomes:
                settled[token] = self._report(kept, outcomes[token])
            else:  # Somebody has locked the row.
                kept.delayed = kept.late = True
                kept.postpone()
        by_token = {job.claim_token: job for job in jobs}
        given |= {r: by_token[r.token] for r in wanting if r.token in by_token}
        self._answer(settled, given)
        self._listener.sent(len(due), len(wanting) - len(found), seconds)

    def _send(
        self, due: list[Kept], wanting: list[Request]
    ) -> tuple[dict[UUID, SettleOutcome], list[Job]]:
        decisions = [kept.decision for kept in due]
        terms = self._eligibility.terms()
        tokens = [request.token for request in wanting if request.token is not None]
        options: ClaimOptions = {
            "workers": {request.token: request.worker for request in wanting if request.token},
            "hints": self.hints,
            "queues": terms.queues,
            "max_attempts": terms.max_attempts,
        }
        try:
            return self._manager.settle_and_claim(decisions, tokens, terms.leases, **options)
        except Exception as error:
            if not decisions or not is_refusal(error):
                raise
        outcomes: dict[UUID, SettleOutcome] = {}
        for kept in due:
            outcomes |= self._settle_alone(kept)
        return outcomes, self._manager.claim(tokens, terms.leases, **options)

    def _settle_alone(self, kept: Kept) -> Outcomes:
        """Settle one decision; as a failure with the reason if the database refuses its content."""
        settle = self._manager.settle
        kept.decision, outcomes = settle_alone(settle, kept.decision, kept.finished)
        return outcomes

    def _answer(self, settled: dict[UUID, Settled], given: dict[Request, Job]) -> None:
        started = {request: self._start(job) for request, job in given.items()}
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            token = request.decision.claim.token if request.decision else None
            request.reply(Swapped(settled.get(token) if token else None, started.get(request)))
        if self._budget is not None and given:
            self._budget -= len(given)
            if self._budget <= 0:
                self._listener.exhausted()

    def _start(self, job: Job) -> Running | None:
        running = self.running.add(job)
        self.claims += 1
        if running is not None:
            self._unknown.pop(running.claim.token, None)
            self._listener.claimed(running)
        return running

    def _report(self, kept: Kept, outcome: SettleOutcome) -> Settled:
        self._kept.pop(kept.decision.claim.token, None)
        settled = Settled(kept.decision, outcome, kept.finished, kept.late)
        self._listener.settled(settled)
        return settled

    def _release_some(self) -> None:
        """Hand back claims that the pool gave up while it goes on."""
        claims, self._to_release = self._to_release, []
        try:
            self.released |= self._release(claims)
        except Exception:
            self._to_release += claims
            raise

    def _release(self, claims: list[Claim]) -> set[UUID]:
        """Hand claims back, and wake whoever may take them; return the tokens that were held."""
        released = self._manager.release(claims)
        if released:
            self.hints.forget()
            announce(self._manager.write_alias, [WakeUp()])
        return released

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
                self._unknown[request.token] = math.inf
                request.token = uuid4()
        for kept in self._kept.values():
            kept.delayed = True
        self._pause_until = now + RESEND_SECONDS
        logger.error(
            "The exchange could not reach the jobs table; it tries again in %g s: %s",
            RESEND_SECONDS,
            str(error).strip(),
            exc_info=not isinstance(error, DatabaseFailure),
        )
        forget_connection(self._manager.write_alias)

    def _find_unknown_claims(self) -> list[Job]:
        """Return jobs that a cut claim statement claimed after all, one for each slot that waits.

        Any others are released uncharged.
        """
        if not self._unknown:
            return []
        found = self._readable(self._manager.on_write_alias().claimed_with(self._unknown))
        wanted = sum(request.token is not None for request in self._waiting)
        surplus = [claim for job in found[wanted:] if (claim := job.claim)]
        for token in self._release(surplus):
            del self._unknown[token]
        now = time.monotonic()
        self._unknown = {
            token: min(until, now + UNKNOWN_CLAIM_SECONDS)
            for token, until in self._unknown.items()
            if until > now
        }
        return found[:wanted]

    def _readable(self, jobs: JobQuerySet) -> list[Job]:
        """Return the jobs that can be read; the claims of others are left to the reaper."""
        found: list[Job] = []
        for token in jobs.values_list("claim_token", flat=True):
            try:
                found += jobs.filter(claim_token=token)
            except Exception as error:
                if isinstance(error, DatabaseFailure) and not isinstance(error, DataError):
                    raise
                logger.exception("A job that was claimed cannot be read")
                if token is not None:
                    self._unknown.pop(token, None)
        return found

    def _give_up(self) -> None:
        """Leave to the reaper what could not be written for ten leases."""
        now = time.monotonic()
        for kept in [kept for kept in self._kept.values() if kept.give_up_at < now]:
            self._report(kept, SettleOutcome.WRITE_FAILED)

    def _last_statements(self) -> None:
        while not self._inbox.empty():
            request = self._inbox.get()
            if request is not None:
                self._admit(request)
        self._dismiss()
        due = list(self._kept.values())
        if due:
            outcomes, _ = self._send(due, [])
            for kept in due:
                if kept.decision.claim.token in outcomes:
                    self._report(kept, outcomes[kept.decision.claim.token])
        for running in self.running.all():
            if running.end():
                self._listener.handed_back(running)
                self._to_release.append(running.claim)
        lost = self._manager.on_write_alias().claimed_with(self._unknown)
        for job_id, token in lost.values_list("pk", "claim_token"):
            if token is not None:
                self._to_release.append(Claim(job_id, token))
        self._release_some()
