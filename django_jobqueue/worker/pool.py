"""The pool: the threads of one worker process, from start to a bounded stop."""

import logging
import os
import queue
import socket
import threading
import time
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from django.apps import apps

from ..conf import settings
from ..exceptions import SetupError
from ..models import Job
from ..states import Decision, JobStatus, SettleOutcome
from ..wakeups import Bell
from .drain import Drain
from .eligibility import Eligibility
from .event_loop import EventLoop
from .exchange import Exchange
from .execution import Execution
from .housekeeping import Chore, Housekeeping, Promotion
from .slot import Slot

if TYPE_CHECKING:
    from .loops import Loop

logger = logging.getLogger(__name__)

LAST_STATEMENTS_SECONDS = 4.0
"""Of the five seconds that a stop may take beyond its grace: time to hand claims back."""

LONGEST_HOST_NAME = 150


class PoolEvent(Enum):
    """What a pool says of itself, through its inbox."""

    DRAINED = "drained"
    EXHAUSTED = "claimed as many jobs as it may"
    ENDED = "every slot has ended"


class Pool:
    """N independent slots and the threads that serve them.

    `concurrency`: the number of slots, by default `WORKER_CONCURRENCY`; 0 or less runs none.
    `types`, `queues`: what to claim, None for all this process can run. `using`: the alias of
    the jobs table, by default where the router writes `Job`. `drain`: find out when all is done
    and say so. `max_jobs`: claim that many, then say so.

    `start` and `stop` may be called more than once. The pool never ends the process: what it
    has to say arrives in `inbox` as a `PoolEvent`.
    """

    def __init__(
        self,
        concurrency: int | None = None,
        *,
        types: Collection[str] | None = None,
        queues: Sequence[str] | None = None,
        using: str | None = None,
        drain: bool = False,
        max_jobs: int | None = None,
    ) -> None:
        self.concurrency = settings.WORKER_CONCURRENCY if concurrency is None else concurrency
        self.name = f"{socket.gethostname()[:LONGEST_HOST_NAME]}:{os.getpid()}"
        self.eligibility = Eligibility(types, tuple(queues) if queues is not None else None)
        self.manager = Job.objects.db_manager(using) if using else Job.objects
        self.outcomes: Counter[SettleOutcome] = Counter()
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()

        self._stopping = threading.Event()
        self._bell = Bell()
        self._lifecycle = threading.Lock()
        self._started = False
        self._closed = False
        self._said: set[PoolEvent] = set()
        self._event_loop = EventLoop(threading.Event())
        self._exchange = Exchange(
            self.manager,
            self.eligibility,
            self._stopping,
            budget=max_jobs,
            on_settled=self._settled,
            on_exhausted=lambda: self._say(PoolEvent.EXHAUSTED),
        )
        self._slots = self._make_slots()
        self._housekeeping = Housekeeping(self._chores(drain=drain), self.manager.write_alias)

    def start(self) -> None:
        """Start all threads. Raises SetupError before the site is ready. Idempotent."""
        if not apps.ready:
            raise SetupError(
                "The pool was started while Django was still starting, so handlers may be "
                "missing. Start it after django.setup()."
            )
        with self._lifecycle:
            if self._started or self._closed:
                return
            self._started = True
            if not self._slots:
                warnings.warn(
                    f"The worker has {self.concurrency} slots and runs no jobs.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            for thread in (self._exchange, self._housekeeping, *self._slots):
                thread.start()

    def finish(self) -> None:
        """Claim no more; slots end as their jobs do. Does not wait. Idempotent."""
        self._stopping.set()
        self._bell.ring()
        self._exchange.wake()
        if not self._slots:
            self._say(PoolEvent.ENDED)

    def stop(self, grace: float | None = None) -> int:
        """End the pool: jobs get `grace` seconds to finish, what still runs is handed back.

        `grace` defaults to `SHUTDOWN_GRACE`. Returns how many jobs were handed back, uncharged.
        Takes no more than `grace` + 5 seconds, the database away included. Threads of handlers
        that go on running cannot write through the queue any more. Idempotent.
        """
        deadline = time.monotonic() + (settings.SHUTDOWN_GRACE if grace is None else grace)
        with self._lifecycle:
            if self._closed or not self._started:
                self._closed = True
                return 0
            self._closed = True
        self.finish()
        for slot in self._slots:
            slot.join(max(deadline - time.monotonic(), 0.0))
        return self._close()

    def died(self) -> list[str]:
        """Return the names of threads that died; empty in a healthy pool."""
        threads: list[Loop] = [
            self._exchange, self._housekeeping, self._event_loop, *self._slots
        ]  # fmt: skip
        return [thread.name for thread in threads if thread.died]

    @property
    def busy(self) -> int:
        """How many claims run right now."""
        return len(self._exchange.held)

    def _close(self) -> int:
        running = self._exchange.held.all()
        self._housekeeping.shut_down()
        for held in running:
            logger.warning(
                "Job %s (%s) did not finish in time and is handed back",
                held.claim.job_id,
                held.job_type,
            )
        claims = [held.claim for held in running]
        if not self._exchange.shut_down(claims, LAST_STATEMENTS_SECONDS):
            logger.error(
                "The database did not answer the last statements: %d decisions and %d running "
                "jobs are left to the reaper",
                self._exchange.unwritten,
                len(claims),
            )
        self._event_loop.halt.set()
        self._event_loop.shut_down()
        return len(self._exchange.released)

    def _make_slots(self) -> list[Slot]:
        execution = Execution(self._event_loop)
        return [
            Slot(
                self._exchange.seat(f"{self.name}:{number}"),
                execution.run,
                self._bell,
                self._stopping,
                poll_interval=settings.POLL_INTERVAL,
                on_idle=self._slot_idles,
                on_ended=self._slot_ended,
            )
            for number in range(1, max(self.concurrency, 0) + 1)
        ]

    def _chores(self, *, drain: bool) -> list[Chore]:
        chores: list[Chore] = [Promotion(self.manager, self._bell, settings.POLL_INTERVAL)]
        self._drain = drain
        if drain:
            chores.append(
                Drain(
                    self.manager,
                    self.eligibility,
                    worker_prefix=f"{self.name}:",
                    all_idle=self._all_idle,
                    on_drained=lambda: self._say(PoolEvent.DRAINED),
                )
            )
        return chores

    def _all_idle(self) -> bool:
        return all(slot.idle for slot in self._slots) and not self._exchange.unwritten

    def _slot_idles(self) -> None:
        if self._drain and self._all_idle():
            self._housekeeping.hurry()

    def _slot_ended(self) -> None:
        if all(slot.finished for slot in self._slots):
            self._say(PoolEvent.ENDED)

    def _settled(self, decision: Decision, outcome: SettleOutcome) -> None:
        self.outcomes[outcome] += 1
        log_settled(decision, outcome)
        if decision.changes.status is JobStatus.PENDING and decision.changes.delay is not None:
            self._housekeeping.hurry(decision.changes.delay.total_seconds())

    def _say(self, event: PoolEvent) -> None:
        if event not in self._said:
            self._said.add(event)
            self.inbox.put(event)


LEVELS = {
    SettleOutcome.SUCCEEDED: logging.INFO,
    SettleOutcome.RETRY_SCHEDULED: logging.WARNING,
    SettleOutcome.FAILED: logging.ERROR,
    SettleOutcome.CLAIM_LOST: logging.ERROR,
    SettleOutcome.WRITE_FAILED: logging.ERROR,
}


def log_settled(decision: Decision, outcome: SettleOutcome) -> None:
    """Write the one log line that each settled attempt gets."""
    attempt = decision.attempt
    error = attempt.error.last_error if attempt.error else ""
    logger.log(
        LEVELS.get(outcome, logging.INFO),
        "Job %s attempt %d: %s%s",
        decision.claim.job_id,
        attempt.number,
        outcome.value,
        f" ({error})" if error else "",
    )
