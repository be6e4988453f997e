"""One attempt: run the job's handler, and decide what its end means."""

import inspect
import random
from typing import Any

from .. import registry
from ..conf import settings
from ..exceptions import HandlerNotFound, InvalidResult
from ..jsonvalues import NotJSON, encode, json_copy
from ..models import Job
from ..policy import Ending, decide
from ..states import Attempt, Decision
from .connections import clean_connections
from .eligibility import retry_limits
from .event_loop import EventLoop
from .reports import report_of


class Execution:
    """Runs the attempts of one process; called by every slot."""

    def __init__(self, event_loop: EventLoop) -> None:
        self._event_loop = event_loop

    def run(self, job: Job) -> Decision:
        """Run a claimed job's handler and return the decision. Never raises."""
        # What the claim wrote, before the handler can touch the instance.
        claim = job.claim
        if claim is None:
            raise ValueError(f"job {job.pk} is not claimed")
        number, worker, started_at = job.attempts, job.worker, job.started_at
        limits = retry_limits(job.max_attempts)

        ending = self._ending(job)

        report = report_of(ending.error) if ending.error is not None else None
        attempt = Attempt(number, worker, started_at, report)
        jitter = random.random()  # noqa: S311 (spreads retries; guards nothing)
        return decide(claim, attempt, ending, limits, r=jitter)

    def _ending(self, job: Job) -> Ending:
        try:
            return Ending(result=self._result(job))
        except BaseException as error:  # noqa: BLE001 (SystemExit too fails this attempt only)
            return Ending(error=error)

    def _result(self, job: Job) -> Any:
        handler = registry.get(job.type)
        if handler is None:
            raise HandlerNotFound(
                f"no handler is registered for job type {job.type!r} in this process; "
                f"known are: {', '.join(registry.types()) or 'none'}"
            )
        with clean_connections():
            result = handler.process(job)
            if inspect.iscoroutine(result):
                result = self._event_loop.run_coroutine(result)
        return storable(result)


def storable(result: Any) -> Any:
    """Return a handler's result as plain JSON types; raise InvalidResult if it cannot be stored."""
    if result is None:
        return None
    try:
        copy = json_copy(result, "result")
    except NotJSON as error:
        raise InvalidResult(str(error)) from None
    size = len(encode(copy).encode())
    if size > settings.MAX_RESULT_BYTES:
        raise InvalidResult(
            f"result has {size:,} bytes; expected at most {settings.MAX_RESULT_BYTES:,}. "
            "Store it elsewhere and return its key, or raise MAX_RESULT_BYTES."
        )
    return copy
