"""`--processes`: a process that starts workers, replaces those that end, and passes signals on.

Children are spawned, never forked: a forked one would share its parent's database connections.
"""

import math
import multiprocessing
import os
import queue
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from ..logs import get_logger
from .child import child
from .options import ExitCode, WorkerOptions
from .signals import Received, signals_held_back, signals_into
from .vitals import ChildSign, SupervisedVitals

logger = get_logger(__name__)

LOOK_SECONDS = 0.2
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 30.0
HEALTHY_SECONDS = 60.0
"""A child that lived this long starts the backoff over."""

MARGIN_SECONDS = 7.0
"""How long after its grace a child may take to end, before it is killed."""


@dataclass(slots=True)
class Place:
    """One of the places for a child: who is there, or when the next one comes."""

    number: int
    process: SpawnProcess | None = None
    started_at: float = 0.0
    next_at: float = 0.0
    backoff: float = FIRST_BACKOFF_SECONDS
    done: bool = False


class Supervisor:
    """Keeps `processes` workers running until it is told to stop, or all of them are drained."""

    def __init__(self, processes: int, options: WorkerOptions, grace: float) -> None:
        self._options = options
        self._grace = grace
        self._spawn = multiprocessing.get_context("spawn")
        self._places = [Place(number) for number in range(1, processes + 1)]
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._first_signal: Received | None = None
        self._deadline = math.inf
        self._exit_code = ExitCode.CLEAN
        self._vitals = SupervisedVitals(options.health_file)

    def run(self) -> ExitCode:
        """Run to the end; FAILED when a child ended badly after the stop began, or was killed."""
        # Python's helper of spawned processes, which would undo `signals_held_back`.
        resource_tracker.ensure_running()
        with signals_into(self._inbox):
            while not all(place.done for place in self._places):
                self._pass_signals_on()
                for place in self._places:
                    self._look_at(place)
                self._vitals.beat(self._signs())
                self._wait()
        self._vitals.end()
        return self._exit_code

    @property
    def _stopping(self) -> bool:
        return self._first_signal is not None

    def _wait(self) -> None:
        sentinels = [p.process.sentinel for p in self._places if p.process is not None]
        if sentinels:
            wait(sentinels, timeout=LOOK_SECONDS)
        elif not all(place.done for place in self._places):
            threading.Event().wait(LOOK_SECONDS)

    def _pass_signals_on(self) -> None:
        while not self._inbox.empty():
            received: Received = self._inbox.get()
            if self._first_signal is None:
                self._first_signal = received
                self._deadline = received.at + self._grace + MARGIN_SECONDS
            elif received.is_echo_of(self._first_signal):
                continue
            else:
                self._deadline = min(self._deadline, received.at + MARGIN_SECONDS)
            for place in self._places:
                if place.process is not None and place.process.pid is not None:
                    send_signal(place.process.pid, received.number)

    def _look_at(self, place: Place) -> None:
        now = time.monotonic()
        if place.process is None:
            if self._stopping:
                place.done = True
            elif now >= place.next_at and not place.done:
                self._start(place)
        elif not place.process.is_alive():
            self._note_end(place, now)
        elif now > self._deadline:
            logger.error("Worker process %d did not stop in time; killed", place.process.pid)
            place.process.kill()

    def _signs(self) -> list[ChildSign | None]:
        """Return where each child that should be there shows that it is alive."""
        return [self._sign(place) for place in self._places if not place.done]

    def _sign(self, place: Place) -> ChildSign | None:
        path = self._vitals.file_of(place.number)
        pid = None if place.process is None else place.process.pid
        return None if path is None or pid is None else ChildSign(path, pid)

    def _start(self, place: Place) -> None:
        options = replace(self._options, health_file=self._vitals.file_of(place.number))
        place.process = self._spawn.Process(
            target=child, args=(options,), name=f"jobworker-{place.number}"
        )
        with signals_held_back():
            place.process.start()
        place.started_at = time.monotonic()

    def _note_end(self, place: Place, now: float) -> None:
        sign = self._sign(place)
        process, place.process = place.process, None
        if process is None:
            return
        process.join()
        if sign is not None:
            self._vitals.clear_up(sign)
        code = process.exitcode if process.exitcode is not None else ExitCode.FAILED
        well = code in {ExitCode.CLEAN, ExitCode.RECYCLE}
        if self._stopping and not well:
            self._exit_code = ExitCode.FAILED
        if self._stopping or (code == ExitCode.CLEAN and self._options.drain):
            place.done = True
            return
        if well:  # Recycled, or somebody stopped this one alone.
            place.next_at = now
            place.backoff = FIRST_BACKOFF_SECONDS
            return
        if now - place.started_at > HEALTHY_SECONDS:
            place.backoff = FIRST_BACKOFF_SECONDS
        place.next_at = now + place.backoff
        logger.error(
            "Worker process %s ended with code %d; another starts in %g s",
            process.pid,
            code,
            place.backoff,
        )
        place.backoff = min(place.backoff * 2, LONGEST_BACKOFF_SECONDS)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a child that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        logger.debug("Process %d is gone", pid)
