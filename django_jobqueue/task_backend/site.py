"""Whether, and by which names, this site uses the queue as a backend of the Tasks framework."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils.module_loading import import_string

from ..conf import tasks_setting

if TYPE_CHECKING:
    from ..discovery import FailedImport
    from ..managers import JobManager

MARK = "runs_on_jobqueue"
"""The attribute by which a backend class of this queue is known, without importing it."""


def aliases() -> tuple[str, ...]:
    """Return the aliases in `TASKS` whose backend is this queue, or a subclass of it."""
    found = []
    for alias, params in tasks_setting().items():
        try:
            backend = import_string(params["BACKEND"])
        except Exception:  # noqa: BLE001, S112 (the Tasks framework itself tells of it)
            continue
        if is_ours(backend):
            found.append(alias)
    return tuple(found)


def is_ours(backend: object) -> bool:
    """Whether a backend, or a class of backends, is of this queue."""
    return bool(getattr(backend, MARK, False))


def backend(alias: str) -> Any:
    """Return the backend of an alias, for this thread."""
    from .api import task_backends

    return task_backends[alias]


def prepare() -> None:
    """Know the tasks and send `task_finished` in this process, if the site uses the queue for them.

    A `tasks` module that cannot be imported keeps no process from starting: a worker tells of it.
    """
    from ..handlers import purge

    purge.ask_first(learn_kept)
    if aliases():
        from . import finished

        finished.connect()
        discover_tasks()


def prepare_worker() -> None:
    """Look for the tasks that the worker runs, and tell of modules that cannot be imported."""
    if failures := discover_tasks():
        from . import learning

        learning.tell(failures)


def discover_tasks() -> "list[FailedImport]":
    """Register the tasks of the `tasks` modules, if the site uses the queue for tasks.

    Returns the modules that could not be imported.
    """
    if not aliases():
        return []
    from . import learning

    return learning.discover_tasks()


def learn_kept(manager: "JobManager", history_retention: timedelta) -> None:
    """Register the tasks of old jobs whose results are kept longer than those of other types."""
    if any(backend(alias).job_options.result_retention is not None for alias in aliases()):
        from . import learning

        learning.learn_kept(manager, history_retention)


def learn(path: str) -> bool:
    """Register a task by its path, if the site uses the queue for tasks; return whether it did."""
    if not aliases():
        return False
    from . import learning

    return learning.learn(path)


def know(path: str) -> bool:
    """Register a task by its path, if the site uses the queue for tasks; return whether it is."""
    if not aliases():
        return False
    from . import learning

    return learning.know(path)


def is_call(payload: object) -> bool:
    """Whether a payload was made by a task backend; asked only where `aliases` has any."""
    from . import call

    return call.is_call(payload)
