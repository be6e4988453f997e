"""The main thread of a worker process: it waits for the pool or for a signal, and stops in time."""

import math
import queue
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import Any

from .pool import Pool, PoolEvent

FORWARDED_SECONDS = 1.0
"""The same signal again within this time was forwarded by somebody, and counts once."""

WATCH_SECONDS = 1.0

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Received:
    """A signal, and when it came."""

    number: int
    at: float

    @property
    def value(self) -> str:
        """The event in words, like that of a `PoolEvent`."""
        return f"received {signal.Signals(self.number).name}"


class ThreadDeath(Enum):
    """What no thread of a pool should ever do."""

    DIED = "a thread died"


Event = PoolEvent | Received | ThreadDeath


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended: why, what it handed back, and which of its threads had died."""

    cause: Event
    released: int
    died: list[str]


def run_until_stopped(pool: Pool, grace: float) -> Ended:
    """Start the pool, wait until it is done or told to stop, and stop it.

    The first SIGTERM or SIGINT ends claiming and gives running jobs `grace` seconds; a second
    one hands them back now. A drained pool, or one that has used up its jobs, waits for what
    runs as long as that takes.
    """
    with signals_into(pool.inbox):
        pool.start()
        cause = wait_for_cause(pool)
        pool.finish()
        wait_for_slots(pool, cause, grace)
        died = pool.died()
        released = pool.stop(grace=0)
    return Ended(cause, released, died)


def wait_for_cause(pool: Pool) -> Event:
    """Return why the pool has to stop."""
    while True:
        event = next_event(pool, WATCH_SECONDS)
        if event is not None:
            return event
        if pool.died():
            return ThreadDeath.DIED


def wait_for_slots(pool: Pool, cause: Event, grace: float) -> None:
    """Wait until every slot has ended, the grace is over, or a further signal ends the patience."""
    signalled = cause if isinstance(cause, Received) else None
    until = math.inf if isinstance(cause, PoolEvent) else time.monotonic() + grace
    while (left := until - time.monotonic()) > 0:
        event = next_event(pool, min(left, WATCH_SECONDS))
        if event is PoolEvent.ENDED:
            return
        if isinstance(event, Received):
            if signalled is None:
                signalled, until = event, time.monotonic() + grace
            elif not was_forwarded(signalled, event):
                return


def next_event(pool: Pool, seconds: float) -> Event | None:
    """Return the next event, or None when there is none for so long."""
    try:
        event: Event = pool.inbox.get(timeout=seconds)
    except queue.Empty:
        return None
    return event


def was_forwarded(first: Received, second: Received) -> bool:
    """Whether the second signal is the first one, passed on by a supervisor or a terminal."""
    return second.number == first.number and second.at - first.at < FORWARDED_SECONDS


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
