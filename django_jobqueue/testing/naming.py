"""How a test names a type: by itself, by its handler, or by the task that it is."""

from typing import Any, Protocol, TypeAlias, runtime_checkable
from uuid import UUID

from django.db.models import Model

from ..handlers.base import JobHandler
from ..models import Job


@runtime_checkable
class TaskLike(Protocol):
    """A task of Django's Tasks framework, wherever it comes from."""

    @property
    def module_path(self) -> str:
        """The path of its function, which is the type of its jobs."""


@runtime_checkable
class ResultLike(Protocol):
    """A result of such a task; its id is that of the job."""

    @property
    def id(self) -> str:
        """The id of the job, as text."""

    @property
    def task(self) -> Any:
        """The task."""


Named: TypeAlias = str | JobHandler | TaskLike


def type_of(named: Named) -> str:
    """Return the type that a test names; raise TypeError for what names none."""
    if isinstance(named, str):
        return named
    if isinstance(named, JobHandler):
        return named.type
    if isinstance(named, TaskLike):
        return named.module_path
    raise TypeError(f"The type is {named!r}; expected a string, a handler or a task.")


def id_of(job: Job | UUID | ResultLike) -> UUID:
    """Return the id of a job that a test has, or of the job behind a task's result."""
    if isinstance(job, UUID):
        return job
    if isinstance(job, Model):
        return UUID(str(job.pk))
    if isinstance(job, ResultLike):
        return UUID(job.id)
    raise TypeError(
        f"run_job() got {job!r}; expected a job, its id, a task's result, or a type, a handler or "
        "a task."
    )
