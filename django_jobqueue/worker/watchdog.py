"""The watchdog: notices attempts that run too long, and looks again at what it was told to."""

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable

from ..logs import get_logger
from .loops import Loop
from .running import Running

logger = get_logger(__name__)


class Watchdog(Loop):
    """Calls `on_timeout` for every attempt that outlives its deadline.

    `attempts` returns those that run; `on_timeout` is set before the start by who answers it.
    There are as many deadlines as slots, so each look goes through them all. Short jobs do not
    wake it: it sleeps until the earliest deadline it was told of, though that job has long ended.
    """

    def __init__(
        self,
        attempts: Callable[[], Iterable[Running]],
    ) -> None:
        super().__init__("watchdog", threading.Event())
        self.on_timeout: Callable[[Running], None] = ignore
        self._attempts = attempts
        self._changed = threading.Event()
        self._wakes_at = math.inf
        self._expected_at = math.inf
        self._number = itertools.count()
        self._later: list[tuple[float, int, Callable[[], None]]] = []

    def expect(self, running: Running) -> None:
        """Look no later than at the attempt's deadline."""
        if running.deadline is not None and running.deadline < self._wakes_at:
            self._expected_at = running.deadline
            self._changed.set()

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back in so many seconds, in this thread."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._number), callback))
        self._changed.set()

    def shut_down(self) -> None:
        """End the thread. Idempotent."""
        self.halt.set()
        self._changed.set()

    def step(self) -> bool:
        """Wait for the next deadline, and end what is over its time."""
        self._wakes_at = math.inf  # Whoever comes while we look must be looked at again.
        expected_at, self._expected_at = self._expected_at, math.inf
        pause = min(self._next(), expected_at) - time.monotonic()
        self._wakes_at = time.monotonic() + pause
        if pause > 0:
            self._changed.wait(min(pause, threading.TIMEOUT_MAX))
        self._changed.clear()
        if self.halt.is_set():
            return False
        now = time.monotonic()
        for running in self._attempts():
            if running.deadline is not None and running.deadline <= now and not running.ended:
                self.on_timeout(running)
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        return True

    def _next(self) -> float:
        deadlines = (running.deadline for running in self._attempts() if not running.ended)
        earliest = min((d for d in deadlines if d is not None), default=math.inf)
        return min(earliest, self._later[0][0] if self._later else math.inf)


def ignore(running: Running) -> None:
    """Do nothing about a timeout."""
