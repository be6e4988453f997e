"""A slot: one loop that swaps what it did for the next job, and runs it."""

import threading
from collections.abc import Callable

from ..models import Job
from ..states import Decision
from ..wakeups import Bell
from .exchange import Seat
from .loops import Loop


class Slot(Loop):
    """Claims one job, runs it, settles it, goes on; waits only when there was none."""

    def __init__(
        self,
        seat: Seat,
        run_job: Callable[[Job], Decision],
        bell: Bell,
        stopping: threading.Event,
        *,
        poll_interval: float,
        on_idle: Callable[[], None],
        on_ended: Callable[[], None],
    ) -> None:
        super().__init__(f"slot {seat.worker}", stopping)
        self.idle = False
        self._seat = seat
        self._run_job = run_job
        self._bell = bell
        self._stopping = stopping
        self._poll_interval = poll_interval
        self._on_idle = on_idle
        self._on_ended = on_ended
        self._decision: Decision | None = None

    def step(self) -> bool:
        """Hand in the last decision, take the next job and run it, or wait for one."""
        ticket = self._bell.ticket()
        decision, self._decision = self._decision, None
        _, job = self._seat.swap(decision, want_next=not self._stopping.is_set())
        if job is not None:
            self._decision = self._run_job(job)
            return True
        if self._stopping.is_set():
            return False
        self._wait(ticket)
        return True

    def ended(self) -> None:
        """Tell the pool."""
        self._on_ended()

    def _wait(self, ticket: int) -> None:
        self.idle = True
        self._on_idle()
        self._bell.wait(ticket, self._poll_interval)
        self.idle = False
