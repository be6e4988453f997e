"""From the path of a task to the task. What lies in no installed app is never imported."""

import importlib
import sys
from types import ModuleType

from django.apps import AppConfig, apps

from .. import registry
from ..exceptions import TaskNotFound
from .api import AnyTask, Task
from .handler import TaskHandler


def find_task(path: str) -> AnyTask:
    """Return the task that a job's type names: one that is known, or that its module holds.

    The module is imported when it lies in an installed app's package. Raises TaskNotFound when it
    lies elsewhere, or holds no such task; whatever its import raises.
    """
    known = registry.get(path)
    if isinstance(known, TaskHandler):
        return known.task
    module_name, _, name = path.rpartition(".")
    if module_name not in sys.modules and app_of(module_name) is None:
        raise TaskNotFound(f"{path} is not known here, and its module lies in no installed app.")
    return task_in(importlib.import_module(module_name), name)


def task_of(path: str) -> AnyTask:
    """Do what `find_task` does; raise TaskNotFound also where the module cannot be imported."""
    try:
        return find_task(path)
    except TaskNotFound:
        raise
    except (Exception, SystemExit) as error:  # The site's own module.
        raise TaskNotFound(
            f"The module of {path} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def app_of(module_name: str) -> AppConfig | None:
    """Return the installed app whose package a module is, or lies in; None for any other."""
    for config in apps.get_app_configs():
        if module_name == config.name or module_name.startswith(f"{config.name}."):
            return config
    return None


def task_in(module: ModuleType, name: str) -> AnyTask:
    """Return the task of that name in a module; raise TaskNotFound when there is none.

    A name that the module makes up when it is asked for is none: making it may import others.
    """
    value = getattr(module, "__dict__", {}).get(name)
    if isinstance(value, Task):
        return value
    found = "no such name" if value is None else f"a {type(value).__name__} of that name"
    raise TaskNotFound(
        f"The module {module.__name__} has {found}; expected a task called {name!r}. If it was "
        "renamed, keep the old name beside the new one until its jobs are done."
    )


def problem_of_place(task: AnyTask) -> str | None:
    """Say why a worker could not find a task again by its path, or None."""
    module = sys.modules.get(task.func.__module__)
    if module is None:
        return None
    value = getattr(module, task.func.__qualname__, None)
    if isinstance(value, Task) and value.func is task.func:
        return None
    return (
        f"{task.module_path} is no task: a worker looks it up by this path and must find it. "
        "Assign the task to the name of its function, as @task does."
    )
