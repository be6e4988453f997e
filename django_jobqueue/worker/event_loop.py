"""The worker's asyncio loop, for handlers that are `async def`."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from .connections import tidy_connections
from .loops import Loop
from .running import Running

if TYPE_CHECKING:
    from concurrent.futures import Future

PING_SECONDS = 1.0

Outcome = tuple[Any, BaseException | None]


class EventLoop(Loop):
    """One thread with one asyncio loop. It answers a ping every second unless it is blocked."""

    def __init__(self) -> None:
        super().__init__("event-loop", threading.Event())
        self.attempts: dict[asyncio.Task[Any], Running] = {}
        self._asyncio = asyncio.new_event_loop()
        self._answered_at = time.monotonic()

    def submit(self, coroutine: Coroutine[Any, Any, Any], running: Running) -> "Future[Outcome]":
        """Begin to await the coroutine; called from a slot's thread, whose context it gets."""
        return asyncio.run_coroutine_threadsafe(isolated(coroutine, running, self), self._asyncio)

    def silent_seconds(self) -> float:
        """Return for how long the loop has not come round; 0 for one that does not run."""
        return time.monotonic() - self._answered_at if self.is_alive() else 0.0

    def current(self) -> Running | None:
        """Return the attempt whose code the loop is in, if any; called from another thread."""
        task = asyncio.current_task(self._asyncio)
        return None if task is None else self.attempts.get(task)

    def step(self) -> bool:
        """Run the loop until it is stopped."""
        asyncio.set_event_loop(self._asyncio)
        self._asyncio.call_soon(self._answer)
        self._asyncio.run_forever()
        return not self.halt.is_set()

    def shut_down(self, spared: Running | None = None) -> None:
        """Cancel what still runs and end the thread as soon as it lets us. Idempotent.

        `spared`: an attempt that may go on to its end, and the thread with it.
        """
        self.halt.set()
        if self.ident is None:
            self._asyncio.close()
        elif self.is_alive():
            with suppress(RuntimeError):  # It closed just now.
                self._asyncio.call_soon_threadsafe(self._cancel_all, spared)

    def ended(self) -> None:
        """Close the loop."""
        self._asyncio.close()

    def _answer(self) -> None:
        self._answered_at = time.monotonic()
        if not self.halt.is_set():
            self._asyncio.call_later(PING_SECONDS, self._answer)

    def _cancel_all(self, spared: Running | None) -> None:
        tasks = asyncio.all_tasks(self._asyncio)
        for task in tasks:
            # A task that is no attempt may be the spared one's.
            if spared is None or self.attempts.get(task, spared) is not spared:
                task.cancel()
        cancelled = asyncio.gather(*tasks, return_exceptions=True)
        cancelled.add_done_callback(lambda _: self._asyncio.stop())


class EventLoops:
    """The loop in use, begun with the first async handler and replaced when it is stuck.

    `on_start`, set before any use, is told of every loop that begins.
    """

    def __init__(self) -> None:
        self.on_start: Callable[[EventLoop], None] = ignore
        self._lock = threading.Lock()
        self._current: EventLoop | None = None
        self._replaced: list[EventLoop] = []
        self._closed = False

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], running: Running) -> Any:
        """Await the coroutine on the loop and return its result; called from a slot's thread.

        Whatever it raises is raised here, SystemExit included; the loop goes on. Ends with
        CancelledError when the attempt is interrupted, however long its task takes to notice.
        """
        future = self._usable().submit(coroutine, running)
        running.interrupt_with(future.cancel)
        result, error = future.result()
        if error is not None:
            raise error
        return result

    @property
    def current(self) -> EventLoop | None:
        """The loop that new coroutines go to, if there is one yet."""
        return self._current

    def replace(self, loop: EventLoop) -> list[Running]:
        """Give up a stuck loop; return the attempts on it that its blocked one takes along.

        That one may still end well: it goes on there, alone.
        """
        with self._lock:
            if self._current is loop:
                self._current = None
            self._replaced = [*filter(EventLoop.is_alive, self._replaced), loop]
        blocking = loop.current()
        loop.shut_down(blocking)
        return [running for running in list(loop.attempts.values()) if running is not blocking]

    def shut_down(self) -> None:
        """End the loop, and those that were replaced. Idempotent."""
        with self._lock:
            self._closed = True
            for loop in [*self._replaced, self._current]:
                if loop is not None:
                    loop.shut_down()

    def join(self, timeout: float) -> None:
        """Wait for the loop's thread to end."""
        loop = self._current
        if loop is not None and loop.ident is not None:
            loop.join(timeout)

    def _usable(self) -> EventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker stops and begins nothing any more")
            if self._current is None:
                self._current = EventLoop()
                self._current.start()
                self.on_start(self._current)
            return self._current


async def isolated(
    coroutine: Coroutine[Any, Any, Any], running: Running, loop: EventLoop
) -> Outcome:
    """Await a handler's coroutine; return its result, or the exception it ended with.

    Its `sync_to_async` calls get a thread of their own, so that one blocked ORM call does not
    stop the other jobs; that thread's connections are tidied before and closed after. Even
    SystemExit must not leave the task: asyncio would end the loop with it.
    """
    task = asyncio.current_task()
    assert task is not None
    loop.attempts[task] = running
    try:
        async with ThreadSensitiveContext():
            try:
                running.own_connections(await sync_to_async(thread_connections)())
                return await coroutine, None
            except BaseException as error:  # noqa: BLE001 (raised again in the slot)
                return None, error
            finally:
                coroutine.close()
                await sync_to_async(close_connections)()
    finally:
        del loop.attempts[task]
        running.left = True


def thread_connections() -> list[BaseDatabaseWrapper]:
    """Return this thread's connections, one for each alias, opened or not."""
    return list(connections.all())


def close_connections() -> None:
    """Close the connections of a thread that ends, whatever state they are in."""
    tidy_connections()
    connections.close_all()


def ignore(loop: EventLoop) -> None:
    """Do nothing about a new loop."""
