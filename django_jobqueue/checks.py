"""System checks. An id is never given to another mistake; docs list them all."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks

from . import conf, discovery, registry
from .states import WorkerMode

SHORTEST_SENSIBLE_LEASE_SECONDS = 15


def register() -> None:
    """Register every check of the package under one tag."""
    for check in (check_settings, check_advice, check_discovery):
        checks.register(check, conf.CHECK_TAG)


def check_settings(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """E001 and E002: a key of JOBQUEUE is unknown, a value cannot be used."""
    return [
        checks.Error(
            problem.message,
            hint=problem.hint,
            id="django_jobqueue.E001" if problem.unknown_key else "django_jobqueue.E002",
        )
        for problem in conf.problems()
    ]


def check_advice(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """W001 to W004: values that work, and probably not as meant."""
    if list(conf.problems()):
        return []
    messages: list[checks.CheckMessage] = []
    mode = conf.settings.WORKER_MODE
    if isinstance(mode, str) and mode.strip().lower() not in WorkerMode.values:
        messages.append(
            checks.Warning(
                f'JOBQUEUE["WORKER_MODE"] is {mode!r}; expected all, system or off.',
                hint='Correct the spelling. Until then workers run as "all".',
                id="django_jobqueue.W001",
            )
        )
    if conf.settings.WORKER_CONCURRENCY <= 0:
        messages.append(
            checks.Warning(
                f'JOBQUEUE["WORKER_CONCURRENCY"] is {conf.settings.WORKER_CONCURRENCY}: '
                "workers run no jobs.",
                hint="Set the number of jobs a worker process runs at once, 1 or more.",
                id="django_jobqueue.W002",
            )
        )
    unknown = [name for name in conf.settings.SYSTEM_MODE_EXTRA_TYPES if registry.get(name) is None]
    if unknown:
        messages.append(
            checks.Warning(
                f'JOBQUEUE["SYSTEM_MODE_EXTRA_TYPES"] names types without a handler: '
                f"{', '.join(unknown)}.",
                hint="Correct or remove them; they are ignored.",
                id="django_jobqueue.W003",
            )
        )
    cap = conf.settings.LEASE_CAP
    if cap is not None and cap < SHORTEST_SENSIBLE_LEASE_SECONDS:
        messages.append(
            checks.Warning(
                f'JOBQUEUE["LEASE_CAP"] is {cap:g} s: a short pause loses claims.',
                hint=f"Use {SHORTEST_SENSIBLE_LEASE_SECONDS} s or more outside of tests.",
                id="django_jobqueue.W004",
            )
        )
    return messages


def check_discovery(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """E003: a jobs module is there and cannot be imported."""
    return [
        checks.Error(
            f"The module {failure.module} could not be imported: {failure.error.rstrip('.')}.",
            hint="Its handlers are missing, so no worker starts. Fix the import.",
            id="django_jobqueue.E003",
        )
        for failure in discovery.failures()
    ]
