"""`@job_handler`: a function as a handler."""

import functools
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils.functional import Promise

from ..policy import ExecutionProfile
from .base import JobHandler

if TYPE_CHECKING:
    from ..models import Job

Process = Callable[["Job"], Any]


class FunctionHandler(JobHandler):
    """A handler made of one function; calling it calls the function."""

    def __init__(
        self,
        function: Process,
        job_type: str,
        *,
        profile: ExecutionProfile | None,
        provider: str | None,
        label: str | Promise,
        history_retention: timedelta | float | None = None,
    ) -> None:
        self.function = function
        self.type = job_type
        self.profile = profile
        self.provider = provider
        self.label = label
        self.history_retention = history_retention
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<{self.function.__module__}.{self.function.__qualname__} for {self.type!r}>"

    def process(self, job: "Job") -> Any:
        """Call the function with the job."""
        return self.function(job)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, job: "Job") -> Any:
        return self.function(job)


def job_handler(
    job_type: str,
    *,
    max_runtime: timedelta | float | None = None,
    max_attempts: int | None = None,
    provider: str | None = None,
    label: str | Promise = "",
    history_retention: timedelta | float | None = None,
) -> Callable[[Process], FunctionHandler]:
    """Register the decorated function as the handler of `job_type`.

    `max_runtime`: ceiling of one attempt, a timedelta or seconds, 0 for none; `max_attempts`:
    how often a job may start; each None takes the site's default. `provider`: the key under
    which rate limits are shared. `label`: what the admin shows. `history_retention`: how long
    terminal jobs of the type are kept, a timedelta or seconds, None for the site's
    `HISTORY_RETENTION`. The function takes the job; it may be `async def`. The name now holds a
    handler with `enqueue` and `aenqueue`, and can still be called.
    """
    if not isinstance(job_type, str):
        raise TypeError('job_handler needs the job type: write @job_handler("app.verb")')

    def decorate(function: Process) -> FunctionHandler:
        from .. import registry

        limited = max_runtime is not None or max_attempts is not None
        profile = ExecutionProfile(max_runtime, max_attempts) if limited else None
        handler = FunctionHandler(
            function,
            job_type,
            profile=profile,
            provider=provider,
            label=label,
            history_retention=history_retention,
        )
        registry.register(handler, stacklevel=3)
        return handler

    return decorate
