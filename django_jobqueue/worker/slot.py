"""A slot: one loop that swaps what it did for the next job, and runs it."""

import threading
from typing import Protocol

from ..models import Job
from ..signals import job_settled
from ..states import TERMINAL_STATUSES, Decision
from ..wakeups import Bell
from .loops import Loop
from .requests import Seat, Settled, Swapped
from .running import Running


class Owner(Protocol):
    """What a slot asks of its pool."""

    def run(self, running: Running) -> Decision | None:
        """Run the job; None when the attempt was ended from outside meanwhile."""

    def conclude(self, settled: Settled) -> None:
        """Do what follows from an outcome: the span's end, the `job_settled` signal."""

    def pause_seconds(self) -> float:
        """Return how long to wait for work."""

    def poll(self) -> None:
        """Look for work that nobody announced; asked when the wait is over."""

    def slot_idles(self) -> None:
        """Note that a slot has nothing to do."""

    def slot_ended(self) -> None:
        """Note that a slot's thread ends."""


class Slot(Loop):
    """Claims one job, runs it, settles it, goes on; waits only when there was none.

    `decision`: how the attempt ended whose slot this one replaces.
    """

    def __init__(
        self,
        seat: Seat,
        owner: Owner,
        bell: Bell,
        stopping: threading.Event,
        *,
        decision: Decision | None = None,
    ) -> None:
        super().__init__(f"slot {seat.worker}", stopping)
        self.seat = seat
        self.idle = False
        self._owner = owner
        self._bell = bell
        self._stopping = stopping
        self._decision = decision

    def step(self) -> bool:
        """Hand in the last decision, take the next job and run it, or wait for one."""
        ticket = self._bell.ticket()
        running = self._swap()
        if running is not None:
            running.slot = self
            self._decision = self._owner.run(running)
            # Without a decision the attempt was ended from outside, and this slot was replaced.
            return self._decision is not None
        if self._stopping.is_set():
            return False
        self._wait(ticket)
        return True

    def ended(self) -> None:
        """Tell the pool."""
        self._owner.slot_ended()

    def _swap(self) -> Running | None:
        decision, self._decision = self._decision, None
        if decision is not None and is_heard(decision):
            # The receivers of job_settled run before this slot claims again.
            self._conclude(self.seat.swap(decision, want_next=False))
            decision = None
        swapped = self.seat.swap(decision, want_next=not self._stopping.is_set())
        self._conclude(swapped)
        return swapped.running

    def _conclude(self, swapped: Swapped) -> None:
        if swapped.settled is not None:
            self._owner.conclude(swapped.settled)

    def _wait(self, ticket: int) -> None:
        self.idle = True
        self._owner.slot_idles()
        if not self._bell.wait(ticket, self._owner.pause_seconds()):
            self._owner.poll()
        self.idle = False


def is_heard(decision: Decision) -> bool:
    """Whether somebody listens for the end of this job."""
    return decision.changes.status in TERMINAL_STATUSES and job_settled.has_listeners(Job)
