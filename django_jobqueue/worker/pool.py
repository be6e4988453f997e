"""The pool: the threads of one worker process, from start to a bounded stop."""

import os
import queue
import threading
import time
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django.apps import apps

from .. import metrics, wakeups
from ..conf import settings
from ..exceptions import SetupError
from ..logs import get_logger
from ..models import Job
from ..states import Decision, SettleOutcome, WorkerMode
from ..task_backend import site
from ..throttle import Throttle
from ..wakeups import Bell, WakeUp
from .abandonment import Abandonment
from .connections import clean_connections
from .drain import Drain
from .eligibility import Eligibility
from .event_loop import EventLoops
from .events import PoolEvent, log_handed_back, log_settled
from .exchange import Exchange
from .execution import Execution
from .housekeeping import Chore, Housekeeping, Promotion
from .janitor import Janitor
from .learner import Learner
from .listener import Listener, Reception
from .lookout import Lookout
from .memory import MemoryLimit
from .presence import Presence, host_name
from .reaper import Reaper
from .renewer import Renewer
from .requests import Seat, Settled
from .running import Running
from .scheduler import Scheduler
from .settling import conclude
from .slot import Slot
from .watchdog import Watchdog

if TYPE_CHECKING:
    from .loops import Loop

logger = get_logger(__name__)

LAST_STATEMENTS_SECONDS = 3.0
"""Of the five seconds that a stop may take beyond its grace: time to hand claims back."""

LAST_THREADS_SECONDS = 0.9


class Pool:
    """N independent slots and the threads that serve them.

    `concurrency`: the number of slots, by default `WORKER_CONCURRENCY`; 0 or less runs none.
    `types`, `queues`: what to claim, None for all this process can run. `mode`: fixes the worker
    mode, which is else read from `WORKER_MODE` at every claim. `using`: the alias of the jobs
    table, by default where the router writes `Job`. `drain`: find out when all is done and say
    so. `max_jobs`: claim that many, then say so. `max_memory`: say so when the process has grown
    beyond that many MiB.

    `start` and `stop` may be called more than once. The pool never ends the process: what it
    has to say arrives in `inbox` as a `PoolEvent`.
    """

    def __init__(
        self,
        concurrency: int | None = None,
        *,
        types: Collection[str] | None = None,
        queues: Sequence[str] | None = None,
        mode: WorkerMode | None = None,
        using: str | None = None,
        drain: bool = False,
        max_jobs: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.concurrency = settings.WORKER_CONCURRENCY if concurrency is None else concurrency
        self.name = f"{host_name()}:{os.getpid()}"
        self.throttle = Throttle()
        self.eligibility = Eligibility(
            types, tuple(queues) if queues is not None else None, mode, self.throttle
        )
        self.manager = Job.objects.db_manager(Job.objects.write_alias if using is None else using)
        self.outcomes: Counter[SettleOutcome] = Counter()
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()

        self._drain = drain
        self._stopping = threading.Event()
        self._bell = Bell()
        self._lifecycle = threading.Lock()
        self._started = False
        self._closed = False
        self._polled_at = float("-inf")
        self._said: set[PoolEvent] = set()
        self._late: queue.SimpleQueue[Settled] = queue.SimpleQueue()
        self._event_loops = EventLoops()
        self._exchange = Exchange(
            self.manager, self.eligibility, self._stopping, budget=max_jobs, listener=self
        )
        self._watchdog = Watchdog(self._exchange.running.all)
        self._execution = Execution(
            self._event_loops, self.throttle, self._stopping, self._watchdog.expect
        )
        self._abandonment = Abandonment(
            self._exchange,
            self._execution,
            self._event_loops,
            self._watchdog,
            replace_slot=self._replace_slot,
            on_too_many=lambda: self._say(PoolEvent.ABANDONED),
        )
        self._renewer = Renewer(self.manager, self._exchange.running, self._exchange.unwritten)
        self._promotion = Promotion(
            self.manager, self._exchange.hints, self._announce, settings.POLL_INTERVAL
        )
        self._drain_check = Drain(
            self.manager,
            self.eligibility,
            worker_prefix=f"{self.name}:",
            slots=max(self.concurrency, 0),
            all_idle=self._all_idle,
            claims=lambda: self._exchange.claims,
            on_drained=lambda: self._say(PoolEvent.DRAINED),
        )
        self._presence = Presence(
            self.manager,
            self.eligibility,
            slots=max(self.concurrency, 0),
            busy=lambda: self.busy,
        )
        self._learners = (
            [Learner(self.manager, self.eligibility, self._learned)] if site.aliases() else []
        )
        self._housekeeping = Housekeeping(
            self._chores(drain=drain, max_memory=max_memory),
            self.manager.write_alias,
            last=self._presence.sign_off,
        )
        self._reception = Reception(
            self._bell, self.eligibility, partial(self._housekeeping.hurry, self._promotion)
        )
        self._listener = Listener(
            self.manager.write_alias, self._reception, self._look, wanted=self._listens
        )
        self._slots = [
            self._slot(self._exchange.seat(f"{self.name}:{number}"))
            for number in range(1, max(self.concurrency, 0) + 1)
        ]

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
            site.prepare_worker()
            if not self._slots:
                warnings.warn(
                    f"The worker has {max(self.concurrency, 0)} slots and runs no jobs.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            wakeups.subscribe(self._reception)
            metrics.watch(self)
            for thread in self._threads():
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
        for slot in list(self._slots):
            slot.join(max(deadline - time.monotonic(), 0.0))
        return self._close()

    def died(self) -> list[str]:
        """Return the names of threads that died; empty in a healthy pool."""
        return [thread.name for thread in self._threads() if thread.died]

    def stalled(self, seconds: float) -> list[str]:
        """Return which of the loops that speak for all did not turn for so long; wake them."""
        self._exchange.wake()
        loops, now = (self._exchange, self._housekeeping), time.monotonic()
        return [loop.name for loop in loops if now - loop.turned_at > seconds]

    @property
    def busy(self) -> int:
        """How many attempts run right now."""
        return len(self._exchange.running)

    @property
    def abandoned(self) -> int:
        """How many handlers run on whose attempt timed out."""
        return self._abandonment.count

    # What slots ask (slot.Owner)

    def run(self, running: Running) -> Decision | None:
        """Run one attempt."""
        return self._execution.run(running)

    def conclude(self, settled: Settled) -> None:
        """End the attempt's span, and tell the receivers of `job_settled` if the job ended."""
        conclude(settled, clean_connections)

    def pause_seconds(self) -> float:
        """Return how long an idle slot waits: for the next poll, or a provider's gate to open."""
        opening = self.throttle.next_opening()
        poll_interval: float = settings.POLL_INTERVAL
        return poll_interval if opening is None else min(poll_interval, opening)

    def poll(self) -> None:
        """Let all idle slots look together, from the beginning: one statement for all of them."""
        now = time.monotonic()
        if now - self._polled_at > self.pause_seconds() / 2:
            self._polled_at = now
            self._exchange.hints.forget()
            self._bell.ring()

    def slot_idles(self) -> None:
        """Look whether a draining worker is done."""
        if self._drain and self._all_idle():
            self._housekeeping.hurry(self._drain_check)

    def slot_ended(self) -> None:
        """Say when the last slot has ended and all is written."""
        slots_ended = all(slot.finished for slot in self._slots)
        if self._stopping.is_set() and slots_ended and self._exchange.all_written:
            self._say(PoolEvent.ENDED)

    # What the exchange tells (requests.Listener)

    def claimed(self, running: Running) -> None:
        """Renew the claim in time."""
        self._renewer.expect(running)

    def settled(self, settled: Settled) -> None:
        """Count and log an outcome; have a retry promoted on time."""
        self.outcomes[settled.outcome] += 1
        log_settled(settled)
        delay = settled.decision.changes.delay
        if delay is not None:
            self._housekeeping.hurry(self._promotion, delay.total_seconds())
        if settled.outcome is SettleOutcome.WRITE_FAILED:
            self.conclude(settled)
        elif settled.late:
            self._late.put(settled)
            self._housekeeping.hurry(self._conclude_late)
        self.slot_ended()

    def sent(self, settles: int, claims: int, seconds: float) -> None:
        """Measure the round trip."""
        operation = "settle_and_claim" if settles and claims else "settle" if settles else "claim"
        metrics.exchanged(operation, seconds)

    def handed_back(self, running: Running) -> None:
        """Say so, and end the span."""
        log_handed_back(running)
        running.tell_end(SettleOutcome.RELEASED)

    def exhausted(self) -> None:
        """Say that no more jobs may be claimed."""
        self._say(PoolEvent.EXHAUSTED)

    # Inside

    def _threads(self) -> "list[Loop]":
        return [
            self._exchange,
            self._renewer,
            self._watchdog,
            self._housekeeping,
            self._listener,
            *self._learners,
            *self._slots,
        ]

    def _close(self) -> int:
        wakeups.unsubscribe(self._reception)
        metrics.unwatch(self)
        self._listener.shut_down()
        self._housekeeping.shut_down()
        self._renewer.shut_down()
        for learner in self._learners:
            learner.shut_down()
        if not self._exchange.shut_down(LAST_STATEMENTS_SECONDS):
            logger.error(
                "The database did not answer the last statements: %d running jobs, and what was "
                "not written yet, are left to the reaper",
                self.busy,
            )
        self._watchdog.shut_down()
        self._event_loops.shut_down()
        deadline = time.monotonic() + LAST_THREADS_SECONDS
        for thread in (
            self._housekeeping,
            self._renewer,
            self._watchdog,
            self._listener,
            self._event_loops,
        ):
            thread.join(max(deadline - time.monotonic(), 0.0))
        for learner in self._learners:
            learner.join(max(deadline - time.monotonic(), 0.0))
        return len(self._exchange.released)

    def _slot(self, seat: Seat, decision: Decision | None = None) -> Slot:
        return Slot(seat, self, self._bell, self._stopping, decision=decision)

    def _replace_slot(self, running: Running, decision: Decision | None) -> None:
        """Put a new slot in the place of one whose attempt was ended from outside."""
        old = running.slot
        if old is None or old not in self._slots:
            return
        new = self._slot(old.seat, decision)
        self._slots[self._slots.index(old)] = new
        new.start()

    def _chores(self, *, drain: bool, max_memory: int | None) -> list[Chore]:
        chores: list[Chore] = [
            self._promotion,
            Scheduler(self.manager, settings.POLL_INTERVAL),
            Lookout(self.manager, self.eligibility, self._exchange.hints, self._bell.ring),
            self._conclude_late,
            self._presence,
        ]
        if settings.REAPER_ENABLED:
            # First, as a late call starts its watch again.
            reaper = Reaper.from_settings(self.manager, on_requeued=lambda _: self._requeued())
            chores.insert(0, reaper)
        chores.append(Janitor(enabled=lambda: self.eligibility.mode is not WorkerMode.OFF))
        if max_memory is not None:
            chores.append(MemoryLimit(max_memory, lambda: self._say(PoolEvent.OVERGROWN)))
        if drain:
            chores.append(self._drain_check)
        return chores

    def _announce(self) -> None:
        """Wake the idle slots of all workers: jobs became ready that nobody enqueued."""
        wakeups.announce(self.manager.write_alias, [WakeUp()])

    def _requeued(self) -> None:
        """Let everybody find jobs that were reaped, wherever they lie."""
        self._exchange.hints.forget()
        self._announce()

    def _learned(self) -> None:
        """Let the idle slots find jobs of types that were unknown, wherever they lie."""
        self._exchange.hints.forget()
        self._bell.ring()

    def _look(self) -> None:
        """Look for work that came while nobody listened."""
        self._bell.ring()
        self._housekeeping.hurry(self._promotion)

    def _listens(self) -> bool:
        return bool(settings.NOTIFY) and self.eligibility.mode is not WorkerMode.OFF

    def _conclude_late(self) -> float:
        """Do what follows from outcomes that came after their slot had gone on."""
        while not self._late.empty():
            self.conclude(self._late.get())
        return float("inf")

    def _all_idle(self) -> bool:
        idle = all(slot.idle for slot in self._slots) and not self._exchange.unwritten()
        return idle and not any(learner.busy for learner in self._learners)

    def _say(self, event: PoolEvent) -> None:
        if event not in self._said:
            self._said.add(event)
            self.inbox.put(event)
