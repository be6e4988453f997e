"""`TASKS`: aliases of this queue, and their `OPTIONS`."""

from typing import Any

from django import VERSION
from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from ..conf import tasks_setting
from ..task_backend import site
from .catalogue import PREFIX, message

OWN_FRAMEWORK = (6, 0)
"""Since this version Django has the Tasks framework, and checks every backend itself."""


def check_backend(alias: str, options: Any) -> list[checks.CheckMessage]:
    """E009, E010 and E012, of one alias."""
    from ..task_backend.options import problems_of

    found = [
        message("E010" if problem.is_known else "E009", problem.text, problem.hint)
        for problem in problems_of(alias, options)
    ]
    if not apps.is_installed(PREFIX):
        found.append(
            message(
                "E012",
                f'TASKS["{alias}"] is a backend of {PREFIX}, which is not in INSTALLED_APPS.',
                f'Add "{PREFIX}" to INSTALLED_APPS, and run migrate.',
            )
        )
    return found


def check_tasks(**_: Any) -> list[checks.CheckMessage]:
    """E011; what the backends say too, where nothing else asks them."""
    found = []
    for alias, params in tasks_setting().items():
        path = params.get("BACKEND") if isinstance(params, dict) else None
        if not isinstance(path, str) or not path.startswith(f"{PREFIX}."):
            continue
        try:
            import_string(path)
        except (ImportError, ImproperlyConfigured) as error:
            found.append(
                message("E011", f'TASKS["{alias}"] cannot be used: {error}', "Correct BACKEND.")
            )
    if VERSION < OWN_FRAMEWORK and not apps.is_installed("django_tasks"):
        found += [said for alias in site.aliases() for said in site.backend(alias).check()]
    return found
