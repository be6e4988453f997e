"""A job as the result of a task.

The attempts of a result are those that were charged: not one that was handed back, or that a rate
limit deferred. After somebody retried a job by hand, those since then.
"""

from dataclasses import fields
from typing import TYPE_CHECKING

from ..exceptions import JobCancelled
from ..states import JobStatus, SettleOutcome
from .api import AnyResult, AnyTask, TaskError, TaskResult, TaskResultStatus
from .call import Call

if TYPE_CHECKING:
    from ..models import Job, JobAttempt

STATUSES = {
    JobStatus.PENDING: TaskResultStatus.READY,
    JobStatus.RUNNING: TaskResultStatus.RUNNING,
    JobStatus.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    JobStatus.FAILED: TaskResultStatus.FAILED,
    JobStatus.CANCELLED: TaskResultStatus.FAILED,
}

CHARGED = (SettleOutcome.FAILED, SettleOutcome.RETRY_SCHEDULED, SettleOutcome.REAPED)
"""How charged attempts end that leave a row."""

WITHOUT_ROW = (JobStatus.RUNNING, JobStatus.SUCCEEDED)
"""The last attempt of such a job is told by the job itself."""

MOST_URGENT = 100


def result_of(job: "Job", task: AnyTask, call: Call) -> AnyResult:
    """Return the result that a job stands for, as the job was read.

    `task` is the one that is called. Reads the rows of earlier attempts, where there were any.
    """
    rows = history(job)
    workers = [row.worker for row in rows]
    if job.status in WITHOUT_ROW:
        workers.append(job.worker)
    started_at = job.started_at if job.attempts else None
    result: AnyResult = TaskResult(
        task=as_called(task, job, call),
        id=str(job.pk),
        status=STATUSES[JobStatus(job.status)],
        enqueued_at=job.created_at,
        started_at=rows[0].started_at if rows else started_at,
        last_attempted_at=started_at,
        finished_at=job.finished_at,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend or task.backend,
        errors=errors_of(job, rows),
        worker_ids=workers,
    )
    object.__setattr__(result, "_return_value", job.result)
    return result


def history(job: "Job") -> "list[JobAttempt]":
    """Return the rows of the charged attempts of a job, in order."""
    expected = job.attempts - (job.status in WITHOUT_ROW)
    if expected <= 0:
        return []
    alias = type(job).objects.db_manager(job._state.db).write_alias  # noqa: SLF001
    charged = job.attempt_history.using(alias).filter(outcome__in=CHARGED)
    # The job may have gone on, or been retried by hand, since it was read.
    rows: list[JobAttempt] = []
    for row in charged.filter(number__lte=expected).order_by("-pk")[: 2 * expected]:
        if row.number == expected - len(rows):
            rows.append(row)
    return rows[::-1]


def errors_of(job: "Job", rows: "list[JobAttempt]") -> list[TaskError]:
    """Return what went wrong in each of the attempts, and that the job was cancelled."""
    errors = [
        TaskError(
            exception_class_path=class_path(row.exception_class),
            traceback=row.traceback or f"{row.exception_class}: {row.message}\n",
        )
        for row in rows
    ]
    if job.status == JobStatus.CANCELLED:
        path = f"{JobCancelled.__module__}.{JobCancelled.__qualname__}"
        said = f"{path}: The job was cancelled before it ran to its end.\n"
        errors.append(TaskError(exception_class_path=path, traceback=said))
    return errors


def class_path(name: str) -> str:
    """Return the path by which an exception class is imported: rows name builtins alone."""
    return name if "." in name else f"builtins.{name}"


def as_called(task: AnyTask, job: "Job", call: Call) -> AnyTask:
    """Return the task with the values it was enqueued with.

    They are not validated, as `using` does: settings may have changed since.
    """
    changes = {
        "priority": task_priority(job.priority),
        "queue_name": job.queue,
        "run_after": call.run_after,
        "backend": call.backend or task.backend,
    }
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    called: AnyTask = object.__new__(type(task))
    for field in fields(task):
        value = changes.get(field.name, getattr(task, field.name))
        object.__setattr__(called, field.name, value)
    return called


def task_priority(job_priority: int) -> int:
    """Return the priority of a task: the larger, the sooner; of a job it is the smaller."""
    return min(max(-job_priority, -MOST_URGENT), MOST_URGENT)
