"""Stop signals as messages in a queue."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import queue

FORWARDED_SECONDS = 1.0
"""The same signal again within this time was forwarded by somebody, and counts once."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Received:
    """A signal, and when it came on the monotonic clock."""

    number: int
    at: float

    @property
    def value(self) -> str:
        """The event in words, like that of a `PoolEvent`."""
        return f"received {signal.Signals(self.number).name}"

    def is_echo_of(self, first: "Received") -> bool:
        """Whether this is the first signal again, passed on by a supervisor or a terminal."""
        return self.number == first.number and self.at - first.at < FORWARDED_SECONDS


@contextmanager
def signals_into(inbox: "queue.SimpleQueue[Any]") -> Iterator[None]:
    """Put SIGTERM and SIGINT into the inbox; outside the main thread, do nothing.

    `SimpleQueue.put` is reentrant, so a handler may call it wherever it interrupts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def receive(number: int, _frame: FrameType | None) -> None:
        inbox.put(Received(number, time.monotonic()))

    previous = {number: signal.signal(number, receive) for number in SIGNALS}
    # A supervisor starts its children with these held back: what came meanwhile arrives now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let SIGTERM and SIGINT wait. A process started meanwhile gets them once it listens."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
