"""The one way a thread of the worker loops: it never dies of an error."""

import threading
import time

from django.db import connections

from ..logs import get_logger
from .queue_connection import forget_connection, use_queue_connection

logger = get_logger(__name__)

FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 5.0


class Loop(threading.Thread):
    """A daemon thread that repeats `step` until that returns False.

    Whatever a step raises is logged, and after a pause that grows with repeated failures the
    loop goes on. `halt` ends that pause. `using`: the alias of the jobs table, for a loop that
    speaks to it: it gets a connection of its own, and a new one after a failure.
    """

    def __init__(self, name: str, halt: threading.Event, *, using: str | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self.halt = halt
        self.finished = False
        self.turned_at = time.monotonic()
        self._using = using
        self._backoff = FIRST_BACKOFF_SECONDS

    def step(self) -> bool:
        """Do one round; return whether there is another."""
        return False

    def ended(self) -> None:
        """Clean up, in the thread, after the last step."""

    def run(self) -> None:
        """Repeat `step`; called by `start`."""
        try:
            if self._using is not None:
                use_queue_connection(self._using)
            while self._guarded_step():
                pass
            self.finished = True
        finally:
            try:
                self.ended()
            finally:
                connections.close_all()

    @property
    def died(self) -> bool:
        """Whether the thread ran and ended without finishing: nothing a step raises does that."""
        return self.ident is not None and not self.is_alive() and not self.finished

    def turns(self) -> None:
        """Note that the loop goes on."""
        self.turned_at = time.monotonic()

    def _guarded_step(self) -> bool:
        self.turns()
        try:
            goes_on = self.step()
        except BaseException:  # SystemExit too must not end the loop.
            logger.exception("The loop %s failed; it goes on in %.1f s", self.name, self._backoff)
            if self._using is not None:
                forget_connection(self._using)
            self.halt.wait(self._backoff)
            self._backoff = min(self._backoff * 2, LONGEST_BACKOFF_SECONDS)
            return True
        self._backoff = FIRST_BACKOFF_SECONDS
        return goes_on
