"""The main thread of a worker process: it waits for the pool or for a signal, and stops in time."""

import queue
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .pool import Pool, PoolEvent

FORWARDED_SECONDS = 1.0
"""The same signal again within this time was forwarded by somebody, and counts once."""

WATCH_SECONDS = 1.0

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended: why, what it handed back, and which of its threads had died."""

    cause: str
    released: int
    died: list[str]


@dataclass(frozen=True, slots=True)
class Received:
    """A signal, and when it came."""

    number: int
    at: float


def run_until_stopped(pool: Pool, grace: float) -> Ended:
    """Start the pool, wait until it is done or told to stop, and stop it.

    The first SIGTERM or SIGINT ends claiming and gives running jobs `grace` seconds; a second
    one hands them back now. A drained pool, or one that has used up its jobs, waits for what
    runs as long as that takes.
    """
    with signals_into(pool.inbox):
        pool.start()
        first = wait_for_event(pool, until=None)
        died = pool.died()
        bounded = died or isinstance(first, Received)
        pool.finish()
        wait_for_slots(pool, first, time.monotonic() + grace if bounded else None, grace)
        released = pool.stop(grace=0)
    return Ended(cause_of(first), released, died)


def wait_for_slots(pool: Pool, cause: Any, until: float | None, grace: float) -> None:
    """Wait until every slot has ended, `until` comes, or a further signal ends the patience."""
    signalled = cause if isinstance(cause, Received) else None
    while True:
        event = wait_for_event(pool, until)
        if event is PoolEvent.ENDED or event is None:
            return
        if isinstance(event, Received):
            if signalled is None:
                signalled, until = event, time.monotonic() + grace
            elif not was_forwarded(signalled, event):
                return


def wait_for_event(pool: Pool, until: float | None) -> Any:
    """Return the next event of the pool or signal; None when `until` comes or a thread dies."""
    while until is None or time.monotonic() < until:
        left = WATCH_SECONDS if until is None else max(until - time.monotonic(), 0.0)
        try:
            return pool.inbox.get(timeout=min(left, WATCH_SECONDS))
        except queue.Empty:
            if pool.died():
                return None
    return None


def was_forwarded(first: Received, second: Received) -> bool:
    """Whether the second signal is the first one, passed on by a supervisor or a terminal."""
    return second.number == first.number and second.at - first.at < FORWARDED_SECONDS


def cause_of(event: Any) -> str:
    """Say in words why a worker stopped."""
    if isinstance(event, Received):
        return f"received {signal.Signals(event.number).name}"
    return event.value if isinstance(event, PoolEvent) else "a thread died"


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
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
