"""The small jobs beside the slots, in one thread with a connection of its own."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from django.db import connections

from ..managers import PROMOTE_BATCH, JobManager
from ..wakeups import Bell
from .loops import Loop

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0

Chore = Callable[[], float]
"""Does its work and returns in how many seconds it wants to come again."""


class Housekeeping(Loop):
    """Runs each chore when its time has come; one that fails is tried again in a second."""

    def __init__(self, chores: Sequence[Chore], using: str) -> None:
        super().__init__("housekeeping", threading.Event())
        self._using = using
        self._due = dict.fromkeys(chores, 0.0)
        self._changed = threading.Condition()

    def hurry(self, seconds: float = 0.0) -> None:
        """Run all chores in at most that many seconds."""
        at = time.monotonic() + seconds
        with self._changed:
            self._due = {chore: min(due, at) for chore, due in self._due.items()}
            self._changed.notify()

    def shut_down(self) -> None:
        """End the thread after the chore at hand. Idempotent."""
        self.halt.set()
        with self._changed:
            self._changed.notify()

    def step(self) -> bool:
        """Run what is due, then wait for the next."""
        for chore in list(self._due):
            if self._due[chore] <= time.monotonic() and not self.halt.is_set():
                # Set before the run: a `hurry` during the run must not be overwritten after it.
                self._postpone(chore, float("inf"))
                self._hasten(chore, self._run(chore))
        with self._changed:
            pause = min(self._due.values()) - time.monotonic()
            if pause > 0 and not self.halt.is_set():
                self._changed.wait(min(pause, threading.TIMEOUT_MAX))
        return not self.halt.is_set()

    def _run(self, chore: Chore) -> float:
        try:
            return chore()
        except Exception:
            logger.exception("%s failed; it is tried again in %g s", chore, RETRY_SECONDS)
            connections[self._using].close()
            return RETRY_SECONDS

    def _postpone(self, chore: Chore, at: float) -> None:
        with self._changed:
            self._due[chore] = at

    def _hasten(self, chore: Chore, seconds: float) -> None:
        with self._changed:
            self._due[chore] = min(self._due[chore], time.monotonic() + seconds)


class Promotion:
    """Makes scheduled jobs ready at their time, and wakes the idle slots for them."""

    def __init__(self, manager: JobManager, bell: Bell, poll_interval: float) -> None:
        self._manager = manager
        self._bell = bell
        self._poll_interval = poll_interval

    def __call__(self) -> float:
        """Promote what is due; come again for the next due job, or after the poll interval."""
        promoted = self._manager.promote()
        if promoted:
            self._bell.ring()
        if promoted == PROMOTE_BATCH:
            return 0.0
        seconds = self._manager.seconds_until_due()
        return min(self._poll_interval, max(seconds, 0.0) if seconds is not None else float("inf"))

    def __str__(self) -> str:
        return "The promotion of scheduled jobs"
