"""The backend: validate a task, enqueue its calls, give their results back."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from ..enqueueing import JobRequest, default_dedup_key, enqueue_once, payload_of, text
from ..exceptions import InvalidCall, InvalidJob, TaskNotFound
from . import finished, handler
from .api import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    task_enqueued,
)
from .call import Call
from .finding import problem_of_place, task_of
from .limits import Limits, check_limits
from .options import Options
from .results import result_of

if TYPE_CHECKING:
    from ..managers import JobManager


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTask(Task):  # type: ignore[type-arg]
    """A task with its own limits: keyword arguments of `@task` since Django 6.1."""

    max_attempts: int | None = None
    max_runtime: timedelta | float | None = None
    provider: str | None = None

    def __post_init__(self) -> None:
        # Zero-argument `super` fails in a dataclass with slots on Python 3.12.
        Task.__post_init__(self)
        check_limits(self.name, Limits(self.max_attempts, self.max_runtime, self.provider))
        handler.register(self)


class JobBackend(BaseTaskBackend):
    """Tasks as jobs of this queue: the type is the task's path, the payload the call."""

    runs_on_jobqueue: ClassVar[bool] = True

    task_class = JobTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, dict(params))
        finished.connect()

    @cached_property
    def job_options(self) -> Options:
        """The options, checked; raises ImproperlyConfigured naming the first that is wrong."""
        return Options.of(self.alias, self.options)

    def jobs(self) -> "JobManager":
        """The manager of the jobs, on the database that the options name."""
        from ..models import Job

        database = self.job_options.database
        return Job.objects if database is None else Job.objects.db_manager(database)

    def validate_task(self, task: AnyTask) -> None:
        """Raise InvalidTask for a task that cannot become a job."""
        super().validate_task(task)
        try:
            text("type", task.module_path)
            text("queue", task.queue_name)
        except InvalidJob as error:
            raise InvalidTask(f"Task {task.module_path} cannot be a job: {error}") from None

    def enqueue(  # type: ignore[override]
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AnyResult:
        """Insert a job for one call, inside the caller's transaction, and return its result.

        With an active job of the same dedup key that job's, untouched. Raises InvalidTask before
        any SQL for a task that a worker could not find again, TypeError or ValueError (InvalidJob)
        for arguments that cannot be stored. `task_enqueued` is sent for a new job; a receiver that
        fails is logged.
        """
        self.validate_task(task)
        if problem := problem_of_place(task):
            raise InvalidTask(problem)
        call = Call.made(args, kwargs, self.alias, task.run_after)
        request = JobRequest(
            task.module_path,
            call.payload(),
            queue=task.queue_name,
            priority=-int(task.priority),
            scheduled_for=task.run_after,
            dedup_key=self._dedup_key(task, call),
        )
        handler.register(task)
        job, is_new = enqueue_once(self.jobs(), request)
        result = result_of(job, task, Call.of(job.payload))
        if is_new:
            task_enqueued.send_robust(sender=type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> AnyResult:
        """Return the result of a job of a task, read where jobs are written.

        Raises TaskResultDoesNotExist for an id of none, and for one whose task is not to be found
        in this process.
        """
        job = None
        # A UUID of anything; a row that Python cannot read.
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            job = self.jobs().on_write_alias().filter(pk=UUID(result_id)).first()
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        try:
            call = Call.of(job.payload)
            return result_of(job, task_of(job.type), call)
        except (InvalidCall, TaskNotFound) as error:
            raise TaskResultDoesNotExist(f"{result_id}: {error}") from error

    def _dedup_key(self, task: AnyTask, call: Call) -> str | None:
        dedup = self.job_options.dedup
        if dedup is None:
            return None
        # Checked before a key is made of it, and copied: the job must not lose what a function
        # takes out of it.
        payload = payload_of(call.payload())
        key = dedup(task, payload["args"], payload["kwargs"])
        if key is None:
            return None
        try:
            # Two tasks may make the same key.
            return default_dedup_key(task.module_path, "dedup", text("dedup_key", key))
        except InvalidJob as error:
            raise InvalidJob(
                f'The dedup function of TASKS["{self.alias}"] made no key for a call of '
                f"{task.module_path}: {error}"
            ) from None
