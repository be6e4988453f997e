"""What a worker does beside the jobs, when a test says so."""

from ..conf import settings, stuck_threshold
from ..models import Job
from ..schedules.declaring import declared
from ..schedules.firing import agenda, fire
from ..schedules.syncing import sync
from ..signals import send_reaped
from ..states import Reaped
from ..task_backend import site
from .surroundings import contained


def run_schedules() -> list[Job]:
    """Fire the schedules that are due, and return the jobs that they made.

    The first call writes what the code declares, in the `tasks` modules too, and notes when each
    schedule ticks next; calls after that time make jobs. Raises InvalidSchedule for a schedule that
    cannot be used.
    """
    site.discover_tasks()
    manager = Job.objects
    declarations = declared()
    sync(manager.write_alias, declarations.values())
    due = agenda(manager.write_alias, declarations).due
    return [job for key in due for job in fire(manager, key)]


def reap() -> list[Reaped]:
    """End the claims whose lease has run out, as a worker's reaper does after its watch.

    Returns what became of each: the job waits again, or failed with its attempts spent.
    """
    manager = Job.objects
    reaped: list[Reaped] = []
    while batch := manager.reap(stuck_threshold(), settings.MAX_ATTEMPTS):
        reaped += batch
    with contained():
        send_reaped(manager.model, reaped, manager.write_alias)
    return reaped
