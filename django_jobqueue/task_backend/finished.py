"""`task_finished`, from `job_settled`: whoever made a job terminal sends both."""

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

from .. import registry
from ..exceptions import InvalidCall, TaskFailed, TaskNotFound
from ..logs import get_logger
from ..masking import masked_text
from ..signals import JobSettled, job_settled
from ..states import JobStatus
from .api import AnyResult, TaskResultStatus, task_backends, task_finished
from .call import Call, is_call
from .finding import task_of
from .handler import TaskHandler, elapsed_here, result_here
from .results import result_of

if TYPE_CHECKING:
    from ..models import Job

logger = get_logger(__name__)

UID = "django_jobqueue.task_finished"


def connect() -> None:
    """Send `task_finished` for jobs of tasks from now on. Idempotent."""
    job_settled.connect(send_finished, dispatch_uid=UID)


def disconnect() -> None:
    """Send it no more."""
    job_settled.disconnect(dispatch_uid=UID)


def send_finished(sender: "type[Job]", event: JobSettled, **_: Any) -> None:
    """Send `task_finished` if the job is one of a task that this process can find."""
    handler = registry.get(event.job_type)
    if handler is not None and not isinstance(handler, TaskHandler):
        return
    here = result_here(event.job_id, event.attempts)
    if here is not None and event.status == JobStatus.SUCCEEDED:
        send(succeeded(here))
        return
    job = sender.objects.db_manager(event.using).on_write_alias().filter(pk=event.job_id).first()
    if job is None or (handler is None and not is_call(job.payload)):
        return
    try:
        call = Call.of(job.payload)
        task = task_of(job.type)
    except (InvalidCall, TaskNotFound) as error:
        logger.debug("task_finished is not sent for job %s: %s", job.pk, error)
        return
    # Told as it ended: somebody may have retried it since, and then it is ready since that moment.
    job.status, job.attempts = event.status, event.attempts
    job.finished_at = job.finished_at or job.ready_at
    send(result_of(job, task, call))


def send(result: AnyResult) -> None:
    """Send `task_finished`, from the backend that the task was enqueued with.

    Of a failed task inside an exception handler, as Django's own backends do: its log takes the
    traceback from there. What the task raised, perhaps in another process, is told as text.
    """
    try:
        sender = type(task_backends[result.backend])
    except ImproperlyConfigured as error:
        logger.debug("task_finished of job %s has no sender: %s", result.id, error)
        return
    if result.status != TaskResultStatus.FAILED:
        task_finished.send_robust(sender=sender, task_result=result)
        return
    told = masked_text("".join(error.traceback for error in result.errors[-1:]))
    try:
        raise TaskFailed(f"\n{told}")  # noqa: TRY301 (receivers look at what is handled)
    except TaskFailed:
        task_finished.send_robust(sender=sender, task_result=result)


def succeeded(result: AnyResult) -> AnyResult:
    """Let the result that a task ran with say that it succeeded, without a look at the row.

    Its end is counted from its start, which the database's clock told: the row may say a moment
    later or sooner.
    """
    if result.last_attempted_at is not None:
        object.__setattr__(result, "finished_at", result.last_attempted_at + elapsed_here())
    object.__setattr__(result, "status", TaskResultStatus.SUCCESSFUL)
    return result
