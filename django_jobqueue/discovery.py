"""Finds the site's `jobs` modules, whose import registers the handlers in them."""

import importlib
import traceback
from dataclasses import dataclass

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from .logs import get_logger

MODULE = "jobs"

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FailedImport:
    """A `jobs` module that is there and could not be imported."""

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
    serves pages, and no worker starts with handlers missing.
    """
    _failures.clear()
    for app_config in apps.get_app_configs():
        if app_config.module is None or not module_has_submodule(app_config.module, MODULE):
            continue
        name = f"{app_config.name}.{MODULE}"
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            failure = f"{type(error).__name__}: {error}"
            logger.error("The module %s could not be imported: %s", name, failure)  # noqa: TRY400
            logger.debug("How it failed:", exc_info=True)
            _failures.append(FailedImport(name, failure, traceback.format_exc()))
