"""Ctrl-C and SIGTERM as a number that loops look at, instead of an exception."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """How often a person, or the system, asked to stop."""

    def __init__(self) -> None:
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def receive(self, _number: int, _frame: FrameType | None) -> None:
        # No lock is taken here: this runs between any two steps of the main thread.
        self.count += 1


@contextmanager
def counted_interrupts() -> Iterator[Interrupts]:
    """Count SIGINT and SIGTERM.

    An exception may come out anywhere, also where it is swallowed: in a destructor, or in a
    callback of a library. A number is still there when the loop looks.
    """
    interrupts = Interrupts()
    with handled_by(interrupts.receive, *SIGNALS):
        yield interrupts


@contextmanager
def handled_by(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Let `handler` have these signals; outside the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
