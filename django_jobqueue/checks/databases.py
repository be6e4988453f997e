"""The database that holds the jobs, as far as can be told without connecting to it."""

import importlib
import re
import sqlite3
from collections.abc import Mapping
from typing import Any

from django.core import checks
from django.db import connections

from .. import conf
from ..models import Job
from ..worker.preflight import PSYCOPG_REMEDY
from .catalogue import message
from .settings import settings_are_readable

OLDEST_PSYCOPG = (3, 2, 10)
OLDEST_SQLITE = (3, 35)
PGBOUNCER_PORT = "6432"

VENDORS = {
    "postgresql": "postgresql",
    "postgis": "postgresql",
    "sqlite3": "sqlite",
    "spatialite": "sqlite",
    "mysql": "mysql",
}
"""By the last part of Django's own engines, which need no driver to be named."""


def check_databases(**_: Any) -> list[checks.CheckMessage]:
    """E004 to E006, W005, W007 and W008."""
    alias = Job.objects.write_alias
    if alias not in connections.settings:
        return []  # Django itself says so, and the worker does.
    config = connections.settings[alias]
    match VENDORS.get(str(config.get("ENGINE", "")).rpartition(".")[2]):
        case "postgresql":
            return [*driver(alias), *pool(alias, config), *bouncer(alias, config)]
        case "sqlite":
            return [*sqlite_version(), *transaction_mode(alias, config)]
        case "mysql":
            return isolation(alias, config)
        case _:
            return []


def driver(alias: str) -> list[checks.CheckMessage]:
    """E004: the driver is not psycopg 3, or one that waits for notifications wrongly."""
    oldest = ".".join(map(str, OLDEST_PSYCOPG))
    try:
        version = importlib.import_module("psycopg").__version__
    except ImportError as error:
        return [
            message(
                "E004",
                f'The database "{alias}" is PostgreSQL, and psycopg 3 cannot be imported '
                f"({error}).",
                f"psycopg2 is not enough. {PSYCOPG_REMEDY}",
            )
        ]
    if numbers(version) >= OLDEST_PSYCOPG:
        return []
    return [message("E004", f"psycopg is {version}; expected {oldest} or newer.", PSYCOPG_REMEDY)]


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: "3.2.10" is (3, 2, 10)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def pool(alias: str, config: Mapping[str, Any]) -> list[checks.CheckMessage]:
    """E006: Django refuses every connection of such an alias."""
    age = config.get("CONN_MAX_AGE", 0)
    if not options_of(config).get("pool") or age == 0:
        return []
    return [
        message(
            "E006",
            f'DATABASES["{alias}"] has OPTIONS["pool"] and CONN_MAX_AGE = {age!r}: '
            "Django refuses to connect.",
            "Set CONN_MAX_AGE to 0, or remove the pool.",
        )
    ]


def bouncer(alias: str, config: Mapping[str, Any]) -> list[checks.CheckMessage]:
    """W008: wake-ups that a pooler in transaction mode does not deliver."""
    if str(config.get("PORT", "")) != PGBOUNCER_PORT or not settings_are_readable():
        return []
    if not conf.settings.NOTIFY:
        return []
    return [
        message(
            "W008",
            f'DATABASES["{alias}"] has the port {PGBOUNCER_PORT}, PgBouncer\'s, and '
            'JOBQUEUE["NOTIFY"] is True: in transaction mode no worker is woken.',
            "Give the workers the address of the server itself. Otherwise set NOTIFY to False, "
            "and POLL_INTERVAL to how long a job may wait.",
        )
    ]


def sqlite_version() -> list[checks.CheckMessage]:
    """E005: every claim is an UPDATE with RETURNING."""
    if sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return []
    return [
        message(
            "E005",
            f"SQLite is {sqlite3.sqlite_version}; expected "
            f"{'.'.join(map(str, OLDEST_SQLITE))} or newer.",
            "Use a Python that was built with a newer one, or PostgreSQL.",
        )
    ]


def transaction_mode(alias: str, config: Mapping[str, Any]) -> list[checks.CheckMessage]:
    """W005: two writers that both began by reading cannot both go on."""
    mode = options_of(config).get("transaction_mode")
    if str(mode).upper() in {"IMMEDIATE", "EXCLUSIVE"}:
        return []
    return [
        message(
            "W005",
            f'DATABASES["{alias}"]["OPTIONS"]["transaction_mode"] is {mode!r}: transactions of '
            'the site and of workers fail with "database is locked".',
            'Set it to "IMMEDIATE", and "timeout" to 20 or so.',
        )
    ]


def isolation(alias: str, config: Mapping[str, Any]) -> list[checks.CheckMessage]:
    """W007: a claim of an old snapshot sees no new jobs, and locks the gaps between rows."""
    level = options_of(config).get("isolation_level", "read committed")
    if level is not None and str(level).lower() == "read committed":
        return []
    return [
        message(
            "W007",
            f'DATABASES["{alias}"]["OPTIONS"]["isolation_level"] is {level!r}: claims see old '
            "rows and block each other.",
            'Set it to "read committed", or leave it out.',
        )
    ]


def options_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `OPTIONS` of an alias, which may be missing."""
    return config.get("OPTIONS") or {}
