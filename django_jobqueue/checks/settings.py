"""`JOBQUEUE` by itself: keys and values, one at a time."""

from typing import Any

from django.core import checks

from .. import conf, registry
from ..states import WorkerMode
from .catalogue import message

SHORTEST_SENSIBLE_LEASE_SECONDS = 15


def settings_are_readable() -> bool:
    """Whether every value of `JOBQUEUE` can be used, so that others may be compared with it."""
    return not any(not problem.unknown_key for problem in conf.problems())


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """E001 and E002: a key of JOBQUEUE is unknown, a value cannot be used."""
    return [
        message("E001" if problem.unknown_key else "E002", problem.message, problem.hint)
        for problem in conf.problems()
    ]


def check_advice(**_: Any) -> list[checks.CheckMessage]:
    """W001 to W004, I001 and I002: values that work, and probably not as meant."""
    if not settings_are_readable():
        return []
    messages: list[checks.CheckMessage] = []
    mode = conf.settings.WORKER_MODE
    if isinstance(mode, str) and mode.strip().lower() not in WorkerMode.values:
        messages.append(
            message(
                "W001",
                f'JOBQUEUE["WORKER_MODE"] is {mode!r}; expected all, system or off.',
                'Correct the spelling. Until then workers run as "all".',
            )
        )
    if conf.settings.WORKER_CONCURRENCY <= 0:
        messages.append(
            message(
                "W002",
                f'JOBQUEUE["WORKER_CONCURRENCY"] is {conf.settings.WORKER_CONCURRENCY}: '
                "workers run no jobs.",
                "Set the number of jobs a worker process runs at once, 1 or more.",
            )
        )
    unknown = [name for name in conf.settings.SYSTEM_MODE_EXTRA_TYPES if registry.get(name) is None]
    if unknown:
        messages.append(
            message(
                "W003",
                f'JOBQUEUE["SYSTEM_MODE_EXTRA_TYPES"] names types without a handler: '
                f"{', '.join(unknown)}.",
                "Correct or remove them; they are ignored.",
            )
        )
    cap = conf.settings.LEASE_CAP
    if cap is not None and cap < SHORTEST_SENSIBLE_LEASE_SECONDS:
        messages.append(
            message(
                "W004",
                f'JOBQUEUE["LEASE_CAP"] is {cap:g} s: a short pause loses claims.',
                f"Use {SHORTEST_SENSIBLE_LEASE_SECONDS} s or more outside of tests.",
            )
        )
    return messages + switched_off()


def switched_off() -> list[checks.CheckMessage]:
    """I001 and I002: work that has to be done elsewhere then."""
    messages: list[checks.CheckMessage] = []
    if not conf.settings.PURGE_ENABLED:
        messages.append(
            message(
                "I001",
                'JOBQUEUE["PURGE_ENABLED"] is False: the table of jobs only grows.',
                "Turn it on, or run `manage.py jobqueue purge --yes` from time to time.",
            )
        )
    if not conf.settings.REAPER_ENABLED:
        messages.append(
            message(
                "I002",
                'JOBQUEUE["REAPER_ENABLED"] is False: the jobs of a killed worker stay running.',
                "Let at least one worker process of the site run with True.",
            )
        )
    return messages
