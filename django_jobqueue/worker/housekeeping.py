"""The small jobs beside the slots, in one thread with a connection of its own."""

import threading
import time
from collections.abc import Callable, Sequence

from ..hints import Hints
from ..logs import get_logger
from ..managers import JobManager
from .loops import Loop
from .queue_connection import forget_connection, mend_connections

logger = get_logger(__name__)

RETRY_SECONDS = 1.0
LOCKED_SECONDS = 0.1

Chore = Callable[[], float]
"""Does its work and returns in how many seconds it wants to come again."""


class Housekeeping(Loop):
    """Runs each chore when its time has come; one that fails is tried again in a second.

    `last` is called in this thread when the pool closes.
    """

    def __init__(
        self, chores: Sequence[Chore], using: str, *, last: Callable[[], None] | None = None
    ) -> None:
        super().__init__("housekeeping", threading.Event(), using=using)
        self._using_alias = using
        self._last = last
        self._due = dict.fromkeys(chores, 0.0)
        self._changed = threading.Condition()

    def hurry(self, chore: Chore, seconds: float = 0.0) -> None:
        """Run a chore in at most that many seconds."""
        with self._changed:
            self._due[chore] = min(self._due[chore], time.monotonic() + seconds)
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
                self.hurry(chore, self._run(chore))
        with self._changed:
            pause = min(self._due.values()) - time.monotonic()
            if pause > 0 and not self.halt.is_set():
                self._changed.wait(min(pause, threading.TIMEOUT_MAX))
        return not self.halt.is_set()

    def ended(self) -> None:
        """Do the last thing; what it raises harms nobody."""
        try:
            if self._last is not None:
                self._last()
        except Exception:
            logger.warning("The last chore failed", exc_info=True)

    def _run(self, chore: Chore) -> float:
        self.turns()
        try:
            return chore()
        except BaseException:  # SystemExit too must not end a chore.
            logger.exception("%s failed; it is tried again in %g s", chore, RETRY_SECONDS)
            forget_connection(self._using_alias)
            return RETRY_SECONDS
        finally:
            mend_connections(self._using_alias)  # A chore may run receivers of `job_settled`.

    def _postpone(self, chore: Chore, at: float) -> None:
        with self._changed:
            self._due[chore] = at


class Promotion:
    """Makes scheduled jobs ready at their time; `announce` wakes the idle slots for them."""

    def __init__(
        self,
        manager: JobManager,
        hints: Hints,
        announce: Callable[[], None],
        poll_interval: float,
    ) -> None:
        self._manager = manager
        self._hints = hints
        self._announce = announce
        self._poll_interval = poll_interval

    def __call__(self) -> float:
        """Promote what is due; come again for the next due job, or after the poll interval."""
        seconds = self._manager.seconds_until_due()
        if seconds is None or seconds > 0:
            return self._poll_interval if seconds is None else min(seconds, self._poll_interval)
        if self._manager.promote(hints=self._hints):
            self._announce()
            return 0.0
        # What is due and was not promoted is locked by somebody: not asked for without a pause.
        return min(LOCKED_SECONDS, self._poll_interval)

    def __str__(self) -> str:
        return "The promotion of scheduled jobs"
