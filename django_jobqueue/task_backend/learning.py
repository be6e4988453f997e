"""How a worker comes to know tasks: from the `tasks` modules, and from the jobs that wait."""

from collections.abc import Iterable
from datetime import timedelta

from .. import registry
from ..blame import told
from ..discovery import FailedImport, modules_of_apps
from ..exceptions import TaskNotFound
from ..logs import get_logger
from ..managers import JobManager
from .api import Task
from .call import is_call
from .finding import app_of, find_task, task_of
from .handler import MissingTask, register

MODULE = "tasks"

logger = get_logger(__name__)

_told: set[str] = set()
"""What was said once in this process."""


def discover_tasks() -> list[FailedImport]:
    """Import the `tasks` module of every installed app that has one, and register its tasks.

    Returns those that could not be imported.
    """
    failures = []
    for found in modules_of_apps(MODULE):
        if isinstance(found, FailedImport):
            failures.append(found)
            continue
        for value in list(vars(found).values()):
            # A task of another module has its place there.
            if isinstance(value, Task) and value.func.__module__ == found.__name__:
                register(value)
    return failures


def tell(failures: Iterable[FailedImport]) -> None:
    """Log, once, whose tasks this worker leaves to others."""
    for failed in failures:
        if first_time(failed.module):
            logger.error(
                "The module %s could not be imported, so this worker runs none of its tasks: %s",
                failed.module,
                failed.error,
            )


def know(path: str) -> bool:
    """Register a task by its path; return whether it is where the path says."""
    try:
        register(task_of(path), path)
    except TaskNotFound:
        return False
    return True


def learn(path: str) -> bool:
    """Register what runs the jobs of a task that nobody registered; return whether there is any.

    The module is imported when it lies in an installed app's package, and never otherwise. Where it
    holds no such task the jobs will fail with an explanation; where it cannot be imported they are
    left to a worker that can.
    """
    app = app_of(path.rpartition(".")[0])
    if app is None or path != path.strip():
        if first_time(path):
            logger.error("Jobs of task %s wait, whose module lies in no installed app here.", path)
        return False
    try:
        register(find_task(path), path)
    except TaskNotFound as error:
        registry.register(MissingTask(path, str(error)))
    except BaseException as error:  # noqa: BLE001 (the site's own module may raise anything)
        if first_time(path):
            failure = told(error, app.path)
            logger.error(  # noqa: TRY400 (`told` says it without the traceback)
                "Jobs of task %s wait, whose module cannot be imported: %s", path, failure
            )
        return False
    return True


def learn_kept(manager: JobManager, history_retention: timedelta) -> None:
    """Register the unknown tasks that have jobs which ended longer ago than `history_retention`.

    The purge asks for it: an unknown type says nothing of how long its jobs are kept. Only modules
    in an installed app are imported.
    """
    ended_before = manager.now() - history_retention
    known = registry.types()
    old = manager.on_write_alias().finished_before(ended_before, except_types=known).order_by()
    for path in old.values_list("type", flat=True).distinct():
        if app_of(path.rpartition(".")[0]) is None:
            continue
        if any(map(is_call, old.filter(type=path).payloads(1))):
            know(path)


def forget() -> None:
    """Say again what was said."""
    _told.clear()


def first_time(subject: str) -> bool:
    """Whether this process has not yet been told of a subject; from now on it has."""
    if subject in _told:
        return False
    _told.add(subject)
    return True
