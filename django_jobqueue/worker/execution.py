"""One attempt: run the job's handler, and decide what its end means."""

import inspect
import random
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from django.db import connections

from .. import registry
from ..conf import settings
from ..exceptions import HandlerNotFound, InvalidResult, JobTimeoutError
from ..handlers.base import JobHandler
from ..job_context import log_fields, running_job
from ..jsonvalues import NotJSON, check_size, json_copy
from ..logs import get_logger
from ..policy import Ending, decide, defer
from ..states import Decision
from ..throttle import Throttle
from .connections import clean_connections
from .eligibility import ceiling_of, limits_of
from .events import log_started
from .reports import failure, report_of
from .running import Running

logger = get_logger(__name__)

SHORT_WAIT = timedelta(seconds=1)
"""A job whose provider opens again this soon waits for it in its slot."""


class ProviderClosed(Exception):
    """The provider's gate closed between the claim and the start."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"the provider is closed for {wait.total_seconds():.1f} s")
        self.wait = wait


class Coroutines(Protocol):
    """Where the coroutines of handlers are awaited."""

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], running: Running) -> Any:
        """Await the coroutine, and return its result or raise what it raises."""


def ignore(running: Running, ending: Ending) -> None:
    """Do nothing about an attempt that ended."""


class Execution:
    """Runs the attempts of one process; called by every slot.

    `on_start` is told of every attempt that begins, its deadline known; `on_end` of how each
    ended, before that is judged. A handler runs inside `surroundings`.
    """

    def __init__(
        self,
        event_loops: Coroutines,
        throttle: Throttle,
        stopping: threading.Event,
        on_start: Callable[[Running], None],
        *,
        on_end: Callable[[Running, Ending], None] = ignore,
        surroundings: Callable[[], AbstractContextManager[None]] = clean_connections,
    ) -> None:
        self._event_loops = event_loops
        self._throttle = throttle
        self._stopping = stopping
        self._on_start = on_start
        self._on_end = on_end
        self._surroundings = surroundings

    def run(self, running: Running) -> Decision | None:
        """Run a claimed job's handler and return the decision. Never raises.

        None when the attempt was ended from outside meanwhile: somebody else speaks for it.
        """
        with running_job(running.about):
            return self._run(running)

    def _run(self, running: Running) -> Decision | None:
        handler = registry.get(running.job_type)
        provider = handler.provider if handler is not None else None
        try:
            ending = Ending(result=self._result(running, handler))
        except ProviderClosed as closed:
            return defer(running.claim, running.attempt(), closed.wait) if running.end() else None
        except BaseException as error:  # noqa: BLE001 (SystemExit too fails this attempt only)
            ending = Ending(error=error)
        if not running.end():
            return None
        self._on_end(running, ending)
        if ending.error is None:
            self._throttle.clear(provider, running.ticket)
        return self._decide(running, ending, provider)

    def time_out(self, running: Running) -> Decision:
        """Return the decision for an attempt that ran longer than its ceiling."""
        ceiling = running.ceiling or timedelta(0)
        error = JobTimeoutError(running.claim.job_id, running.job_type, ceiling)
        return self._decide(running, Ending(error=error), provider=None)

    def _decide(self, running: Running, ending: Ending, provider: str | None) -> Decision:
        try:
            return self._judge(running, ending, provider)
        except Exception as error:
            logger.exception(
                "How job %s ended cannot be judged",
                running.claim.job_id,
                extra=log_fields(*running.about),
            )
            return failure(running.claim, running.attempt(), error)

    def _judge(self, running: Running, ending: Ending, provider: str | None) -> Decision:
        report = report_of(ending.error) if ending.error is not None else None
        decision = decide(
            running.claim,
            running.attempt(report),
            ending,
            limits_of(running.max_attempts),
            r=random.random(),  # noqa: S311 (spreads retries; guards nothing)
            hits=running.rate_limit_hits,
            now=datetime.now(UTC),  # noqa: TID251 (a Retry-After date is the provider's clock)
        )
        if decision.trip is not None:
            self._throttle.trip(provider, decision.trip)
        return decision

    def _result(self, running: Running, handler: JobHandler | None) -> Any:
        if handler is None:
            raise HandlerNotFound(
                f"no handler is registered for job type {running.job_type!r} in this process; "
                f"known are: {', '.join(registry.types()) or 'none'}"
            )
        self._wait_for_provider(handler.provider)
        running.ticket = self._throttle.ticket()
        with self._surroundings():
            running.own_connections(list(connections.all()))
            running.ceiling = ceiling_of(handler)
            if running.ceiling is not None:
                running.deadline = time.monotonic() + running.ceiling.total_seconds()
            self._on_start(running)
            log_started(running)
            with running.started():
                result = self._process(running, handler)
        return storable(result)

    def _process(self, running: Running, handler: JobHandler) -> Any:
        on_loop = False
        try:
            result = handler.process(running.job)
            on_loop = inspect.iscoroutine(result)
            return self._event_loops.run_coroutine(result, running) if on_loop else result
        finally:
            if not on_loop:  # A coroutine's task says itself when it is done.
                running.left = True

    def _wait_for_provider(self, provider: str | None) -> None:
        """Wait in the slot for a gate that opens soon; ProviderClosed for any other closed one."""
        while left := self._throttle.wait_left(provider):
            if left > SHORT_WAIT or self._stopping.wait(left.total_seconds()):
                raise ProviderClosed(left)


def storable(result: Any) -> Any:
    """Return a handler's result as plain JSON types; raise InvalidResult if it cannot be stored."""
    if result is None:
        return None
    remedy = "Store it elsewhere and return its key, or raise MAX_RESULT_BYTES."
    try:
        copy = json_copy(result, "result")
        check_size(copy, "result", limit=settings.MAX_RESULT_BYTES, remedy=remedy)
    except NotJSON as error:
        raise InvalidResult(str(error)) from None
    return copy
