"""The worker's asyncio loop, for handlers that are `async def`."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from .connections import tidy_connections
from .loops import Loop


class EventLoop(Loop):
    """One thread with one asyncio loop; started when the first coroutine comes."""

    def __init__(self, halt: threading.Event) -> None:
        super().__init__("event-loop", halt)
        self._starting = threading.Lock()
        self._asyncio: asyncio.AbstractEventLoop | None = None

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await the coroutine on the loop and return its result; called from a slot's thread.

        Whatever it raises is raised here, SystemExit included; the loop goes on.
        """
        future = asyncio.run_coroutine_threadsafe(isolated(coroutine), self._running_loop())
        result, error = future.result()
        if error is not None:
            raise error
        return result

    def step(self) -> bool:
        """Run the loop until it is stopped."""
        if self._asyncio is not None:
            asyncio.set_event_loop(self._asyncio)
            self._asyncio.run_forever()
        return not self.halt.is_set()

    def shut_down(self) -> None:
        """Cancel what still runs and end the thread; `halt` is set before."""
        if self._asyncio is not None and self.is_alive():
            self._asyncio.call_soon_threadsafe(self._cancel_all, self._asyncio)

    def ended(self) -> None:
        """Close the loop."""
        if self._asyncio is not None:
            self._asyncio.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._asyncio is None:
                self._asyncio = asyncio.new_event_loop()
                self.start()
            return self._asyncio

    def _cancel_all(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        cancelled = asyncio.gather(*tasks, return_exceptions=True)
        cancelled.add_done_callback(lambda _: loop.stop())


async def isolated(coroutine: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """Await a handler's coroutine; return its result, or the exception it ended with.

    Its `sync_to_async` calls get a thread of their own, so that one blocked ORM call does not
    stop the other jobs; that thread's connections are tidied before and closed after. Even
    SystemExit must not leave the task: asyncio would end the loop with it.
    """
    async with ThreadSensitiveContext():
        try:
            return await coroutine, None
        except BaseException as error:  # noqa: BLE001 (raised again in the slot)
            return None, error
        finally:
            await sync_to_async(close_connections)()


def close_connections() -> None:
    """Close the connections of a thread that ends, whatever state they are in."""
    tidy_connections()
    connections.close_all()
