"""A task as the handler of its job type."""

import functools
import threading
import time
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from .. import registry
from ..exceptions import TaskNotFound
from ..handlers.base import JobHandler
from ..schedules.declaring import DECLARED_ON
from .api import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    TaskContext,
    normalize_json,
    task_backends,
    task_started,
)
from .call import Call
from .limits import limits_of
from .options import Options
from .results import result_of
from .site import is_ours

if TYPE_CHECKING:
    from ..models import Job


_here = threading.local()
"""The result that the last task in this thread runs, or ran, with, and when it began."""


class TaskHandler(JobHandler):
    """Runs the jobs of one task. Its limits are those of the task and of its own alias.

    The type is the task's path, or another name that its module has for it.
    """

    def __init__(self, task: AnyTask, job_type: str) -> None:
        # Not whatever else is kept on the function, such as a `type`.
        functools.update_wrapper(self, task.func, updated=())  # type: ignore[arg-type]
        schedules = vars(task.func).get(DECLARED_ON)
        if schedules and job_type == task.module_path:  # Another name declares them no second time.
            setattr(self, DECLARED_ON, schedules)
        self.type = job_type
        self.task = task
        self.configure()

    def __repr__(self) -> str:
        return f"<task {self.type}>"

    def configure(self) -> None:
        """Take the limits as the task and the settings say them now."""
        options = options_of(self.task)
        self.history_retention = options.result_retention
        limits = limits_of(self.task).or_else(options.limits)
        self.profile = limits.profile()
        self.provider = limits.provider

    @property
    def is_async(self) -> bool:
        """Whether the task is a coroutine function."""
        return iscoroutinefunction(self.task.func)

    def process(self, job: "Job") -> Any:
        """Call the task; send `task_started` before.

        Raises InvalidCall for a payload that is no call, and TaskNotFound for one of an alias that
        is not of this queue: both end the job.
        """
        call = Call.of(job.payload)
        backend = backend_of(job, call.backend or self.task.backend)
        result = _here.result = result_of(job, self.task, call)
        _here.began = time.monotonic()
        task_started.send_robust(sender=type(backend), task_result=result)
        args = (
            [TaskContext(task_result=result), *call.args] if self.task.takes_context else call.args
        )
        if self.is_async:
            return self._await(args, call.kwargs, result)
        return returned(result, self.task.call(*args, **call.kwargs))

    async def _await(self, args: list[Any], kwargs: dict[str, Any], result: AnyResult) -> Any:
        return returned(result, await self.task.acall(*args, **kwargs))


def returned(result: AnyResult, value: Any) -> Any:
    """Note what a task returned, as JSON; raise TypeError or ValueError for what is none."""
    try:
        normal = normalize_json(value)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"What the task returned cannot be stored: {error}. Return what JSON can hold: None, "
            "booleans, numbers, text, lists, and dicts of them."
        ) from error
    object.__setattr__(result, "_return_value", normal)
    return normal


def result_here(job_id: UUID, attempt: int) -> AnyResult | None:
    """Return the result that an attempt ran with, if it was the last of a task in this thread."""
    result: AnyResult | None = getattr(_here, "result", None)
    if result is None or (result.id, result.attempts) != (str(job_id), attempt):
        return None
    return result


def elapsed_here() -> timedelta:
    """Return how long ago the last task in this thread began."""
    return timedelta(seconds=time.monotonic() - _here.began)


class MissingTask(JobHandler):
    """Fails the jobs of a type whose module is here and holds no such task."""

    def __init__(self, job_type: str, explanation: str) -> None:
        self.type = job_type
        self._explanation = explanation

    def process(self, job: "Job") -> Any:  # noqa: ARG002
        """Raise TaskNotFound, which ends the job."""
        raise TaskNotFound(self._explanation)


def backend_of(job: "Job", alias: str) -> BaseTaskBackend:
    """Return the backend that a job was enqueued with; TaskNotFound for one of another queue."""
    try:
        backend = task_backends[alias]
    except ImproperlyConfigured as error:
        raise TaskNotFound(
            f"Job {job.pk} was enqueued with the task backend {alias!r}: {error}"
        ) from None
    if not is_ours(backend):
        raise TaskNotFound(
            f"Job {job.pk} was enqueued with the task backend {alias!r}, which is "
            f"{type(backend).__name__} here, and not of this queue. Correct TASKS, and "
            "retry the job."
        )
    return backend


def options_of(task: AnyTask) -> Options:
    """Return the options of the alias that a task is defined with; none if they are unusable.

    Those for its handler: a module of tasks may hold the dedup function too, or be imported by the
    module that does, so none is imported while tasks are defined.
    """
    try:
        backend = task_backends[task.backend]
        return (
            Options.of_handlers(backend.alias, backend.options) if is_ours(backend) else Options()
        )
    except ImproperlyConfigured:
        return Options()  # The system checks report it, and an enqueue raises it.


def register(task: AnyTask, path: str | None = None) -> None:
    """Make a task known to this process as `path`, by default its own, unless its function is."""
    job_type = task.module_path if path is None else path
    known = registry.get(job_type)
    if not isinstance(known, TaskHandler) or known.task.func is not task.func:
        registry.register(TaskHandler(task, job_type))


def refresh(job_type: str) -> None:
    """Let the handler of a type take its limits anew, if it is a task's."""
    handler = registry.get(job_type)
    if isinstance(handler, TaskHandler):
        handler.configure()
        registry.register(handler)


def reconfigure(*, setting: str, **_: Any) -> None:
    """Follow `override_settings(TASKS=...)`, which only tests use."""
    if setting == "TASKS":
        for job_type in registry.types():
            refresh(job_type)


setting_changed.connect(reconfigure, dispatch_uid="django_jobqueue.task_backend")
