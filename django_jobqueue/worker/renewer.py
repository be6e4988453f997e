"""The renewer: keeps every claim of the process alive, in one statement a tick."""

import math
import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import lru_cache

from django.db import Error as DatabaseFailure

from ..job_context import log_fields
from ..logs import get_logger
from ..managers import JobManager
from ..policy import renew_interval_for
from .loops import Loop
from .queue_connection import forget_connection
from .running import Running, RunningJobs

logger = get_logger(__name__)

RETRY_SECONDS = 1.0
IDLE_SECONDS = 60.0


class Renewer(Loop):
    """Extends the leases of what runs, and of decisions that could not be written yet.

    `unwritten` returns the attempts whose settle an unreachable database delays.
    """

    def __init__(
        self,
        manager: JobManager,
        running: RunningJobs,
        unwritten: Callable[[], Iterable[Running]],
    ) -> None:
        super().__init__("renewer", threading.Event(), using=manager.write_alias)
        self._manager = manager
        self._running = running
        self._unwritten = unwritten
        self._changed = threading.Event()
        self._last_tick = time.monotonic()
        self._next_tick = math.inf
        self._shortest = math.inf
        self._failed = False

    def expect(self, running: Running) -> None:
        """Renew often enough for this attempt, and for others like it: short jobs wake nobody."""
        interval = interval_of(running)
        if self._last_tick + interval < self._next_tick:
            self._shortest = min(self._shortest, interval)
            self._changed.set()

    def shut_down(self) -> None:
        """End the thread. Idempotent."""
        self.halt.set()
        self._changed.set()

    def step(self) -> bool:
        """Wait for the next tick and renew."""
        self._next_tick = math.inf  # Whoever comes while we look must be looked at again.
        self._next_tick = self._last_tick + self._pause()
        if self._changed.wait(max(self._next_tick - time.monotonic(), 0.0)):
            self._changed.clear()  # The tick is sooner now, or the pool closes.
            return not self.halt.is_set()
        self._last_tick = time.monotonic()
        held = self._held()
        try:
            if held:
                self._renew(held)
            self._failed = False
        except DatabaseFailure as error:
            self._failed = True
            logger.warning("Claims are not renewed; tried again in %g s: %s", RETRY_SECONDS, error)
            forget_connection(self._manager.write_alias)
        return not self.halt.is_set()

    def _held(self) -> list[Running]:
        everyone = [*self._running.all(), *self._unwritten()]
        return [running for running in everyone if not running.claim_lost]

    def _pause(self) -> float:
        if self._failed:
            return RETRY_SECONDS
        shortest, self._shortest = self._shortest, math.inf
        held = min((interval_of(running) for running in self._held()), default=IDLE_SECONDS)
        return min(held, shortest)

    def _renew(self, held: list[Running]) -> None:
        renewed = self._manager.renew(running.claim for running in held)
        for running in held:
            # One that left meanwhile was being settled, and its settle says what became of it.
            missing = running.claim.token not in renewed
            if missing and self._running.get(running.claim.token) is running:
                running.lose_claim()
                logger.error(
                    "The claim of job %s (%s) is lost: another worker may run it",
                    running.claim.job_id,
                    running.job_type,
                    extra=log_fields(*running.about),
                )


def interval_of(running: Running) -> float:
    """Return how often, in seconds, the claim of an attempt is renewed."""
    return seconds_between_renewals(running.lease)


@lru_cache(maxsize=256)
def seconds_between_renewals(lease: timedelta) -> float:
    """Return how often, in seconds, a lease is renewed; asked for at every claim."""
    return renew_interval_for(lease).total_seconds()
