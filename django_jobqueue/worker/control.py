"""The main thread of a worker process: it waits for the pool or for a signal, and stops in time."""

import math
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from .events import PoolEvent
from .pool import Pool
from .signals import Received, signals_into

WATCH_SECONDS = 1.0


class Misfortune(Enum):
    """What makes a worker stop that nobody asked to."""

    THREAD_DIED = "a thread died"
    ORPHANED = "its supervisor vanished"


Event = PoolEvent | Received | Misfortune


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended: why, what it handed back, and which of its threads had died."""

    cause: Event
    released: int
    died: list[str]


def run_until_stopped(
    pool: Pool,
    grace: float,
    *,
    on_start: Callable[[], None],
    on_stop: Callable[[Event], None],
    on_look: Callable[[], None] = lambda: None,
) -> Ended:
    """Start the pool, wait until it is done or told to stop, and stop it.

    The first SIGTERM or SIGINT ends claiming and gives running jobs `grace` seconds; a second
    one hands them back now. A drained pool, or one that has used up its jobs, waits for what
    runs as long as that takes. `on_start` is called once signals are listened to, `on_stop` when
    jobs run that the stop has to wait for, `on_look` about once a second while this waits.
    """
    with signals_into(pool.inbox):
        if not pool.inbox.empty():  # Told to stop before it began: claim nothing.
            pool.finish()
        pool.start()
        on_start()
        cause = wait_for_cause(pool, on_look)
        pool.finish()
        if pool.busy:
            on_stop(cause)
        wait_for_slots(pool, cause, grace, on_look)
        died = pool.died()
        released = pool.stop(grace=0)
    return Ended(cause, released, died)


def wait_for_cause(pool: Pool, on_look: Callable[[], None]) -> Event:
    """Return why the pool has to stop."""
    while True:
        on_look()
        event = next_event(pool, WATCH_SECONDS)
        if event is not None:
            return event
        if pool.died():
            return Misfortune.THREAD_DIED


def wait_for_slots(pool: Pool, cause: Event, grace: float, on_look: Callable[[], None]) -> None:
    """Wait until every slot has ended, the grace is over, or a further signal ends the patience."""
    signalled = cause if isinstance(cause, Received) else None
    until = time.monotonic() + grace if bounded(cause) else math.inf
    while (left := until - time.monotonic()) > 0:
        on_look()
        event = next_event(pool, min(left, WATCH_SECONDS))
        if event is PoolEvent.ENDED:
            return
        if isinstance(event, Received):
            if signalled is None:
                signalled, until = event, time.monotonic() + grace
            elif not event.is_echo_of(signalled):
                return


def bounded(cause: Event) -> bool:
    """Whether running jobs get the grace only; a pool that ends by itself waits for them."""
    return not isinstance(cause, PoolEvent)


def next_event(pool: Pool, seconds: float) -> Event | None:
    """Return the next event, or None when there is none for so long."""
    try:
        event: Event = pool.inbox.get(timeout=seconds)
    except queue.Empty:
        return None
    return event
