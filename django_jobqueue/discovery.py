"""Finds the site's `jobs` modules, whose import registers the handlers in them."""

import importlib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from django.apps import apps
from django.core.signals import request_started
from django.utils.module_loading import module_has_submodule

from .blame import told
from .logs import get_logger

MODULE = "jobs"

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FailedImport:
    """A module that is there and could not be imported."""

    module: str
    error: str
    traceback: str


_failures: list[FailedImport] = []


def failures() -> tuple[FailedImport, ...]:
    """Return what the last `discover_jobs` could not import."""
    return tuple(_failures)


def discover_jobs() -> None:
    """Import the `jobs` module of every installed app that has one.

    A failing import is kept for the system checks instead of raised: the web process still
    serves pages, and no worker starts with handlers missing. A process that serves pages runs no
    checks, so it logs the failure at its first request.
    """
    _failures.clear()
    _failures.extend(found for found in modules_of_apps(MODULE) if isinstance(found, FailedImport))
    request_started.disconnect(log_failures)
    if _failures:
        request_started.connect(log_failures)


def modules_of_apps(name: str) -> Iterator[ModuleType | FailedImport]:
    """Import the submodule of that name of every installed app that has one."""
    for app_config in apps.get_app_configs():
        if app_config.module is None or not module_has_submodule(app_config.module, name):
            continue
        path = f"{app_config.name}.{name}"
        try:
            yield importlib.import_module(path)
        except (Exception, SystemExit) as error:
            logger.debug("How it failed:", exc_info=True)
            yield FailedImport(path, told(error, app_config.path), traceback.format_exc())


def log_failures(**_: Any) -> None:
    """Log what could not be imported, once; commands say it by the system checks instead."""
    if request_started.disconnect(log_failures):
        for failure in failures():
            logger.error("The module %s could not be imported: %s", failure.module, failure.error)
