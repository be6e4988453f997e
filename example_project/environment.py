"""What the environment says about the site. Every wrong value is one clear line.

An empty variable counts as not set. A value that is not set is left to its default, so the
defaults of the job queue live in the package alone.
"""

import importlib
import importlib.util
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

try:
    import environ
except ImportError:
    raise ImproperlyConfigured(
        "The example project needs django-environ; run pip install -e '.[demo]' here."
    ) from None

SQLITE = "django.db.backends.sqlite3"
POSTGRESQL = "django.db.backends.postgresql"
ENGINES = (SQLITE, POSTGRESQL, "django.db.backends.mysql")

SQLITE_OPTIONS = {
    # A transaction takes the write lock when it begins, and so never fails to take it later.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # Readers do not wait for the one writer.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

TRUE = ("true", "1", "yes", "on")
FALSE = ("false", "0", "no", "off")

Parser = Callable[[str, str], Any]


def read_dotenv(path: Path) -> None:
    """Read `path` when it is there; what the process already has wins."""
    environ.Env.read_env(path)


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding spaces, or `default` when it is empty."""
    return str(environ.Env().str(name, default="")).strip() or default


def wrong(name: str, value: str, expected: str) -> ImproperlyConfigured:
    """Return the error for a value: what, which value, and the remedy."""
    return ImproperlyConfigured(
        f'{name} is "{value}"; expected {expected}. Correct it in the environment or in .env, '
        "or leave it out."
    )


def boolean(name: str, value: str) -> bool:
    """Read true or false; a misspelt word is an error and never False."""
    if value.lower() in TRUE:
        return True
    if value.lower() in FALSE:
        return False
    raise wrong(name, value, "true or false")


def whole_number(name: str, value: str) -> int:
    """Read an integer."""
    if re.fullmatch(r"[+-]?[0-9]{1,9}", value):
        return int(value)
    raise wrong(name, value, "a whole number")


def at_least(lowest: int) -> Parser:
    """Return a parser of integers from `lowest`."""

    def parse(name: str, value: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,9}", value) and int(value) >= lowest:
            return int(value)
        raise wrong(name, value, f"a whole number of at least {lowest}")

    return parse


def milliseconds(lowest: int = 0) -> Parser:
    """Return a parser of milliseconds that gives seconds, as the package wants them."""

    def parse(name: str, value: str) -> float:
        if re.fullmatch(r"[0-9]{1,11}", value) and int(value) >= lowest:
            return int(value) / 1000
        raise wrong(name, value, f"milliseconds: a whole number of at least {lowest}")

    return parse


def unchanged(_name: str, value: str) -> str:
    """Leave the reading to the package."""
    return value


def flag(name: str, *, default: bool) -> bool:
    """Return the variable as a truth value."""
    value = text(name)
    return boolean(name, value) if value else default


def number(name: str, *, default: int) -> int:
    """Return the variable as an integer of at least 1."""
    value = text(name)
    return at_least(1)(name, value) if value else default


def names(name: str, *, default: list[str]) -> list[str]:
    """Return the parts of a variable with commas."""
    value = text(name)
    return [part.strip() for part in value.split(",") if part.strip()] if value else default


JOB_SETTINGS: Mapping[str, tuple[str, Parser]] = {
    "JOBS_WORKER_MODE": ("WORKER_MODE", unchanged),
    "JOBS_WORKER_CONCURRENCY": ("WORKER_CONCURRENCY", whole_number),
    "JOBS_POLL_MS": ("POLL_INTERVAL", milliseconds(1)),
    "JOBS_JOB_TIMEOUT_MS": ("JOB_TIMEOUT", milliseconds()),
    "JOBS_SYSTEM_MODE_EXTRA_TYPES": ("SYSTEM_MODE_EXTRA_TYPES", unchanged),
    "JOBS_MAX_ATTEMPTS": ("MAX_ATTEMPTS", at_least(1)),
    "JOBS_RETRY_BASE_MS": ("RETRY_BASE", milliseconds()),
    "JOBS_RETRY_MAX_MS": ("RETRY_MAX", milliseconds()),
    "JOBS_RATELIMIT_MAX_HITS": ("RATE_LIMIT_MAX_HITS", at_least(0)),
    "JOBS_RATELIMIT_BASE_MS": ("RATE_LIMIT_BASE", milliseconds()),
    "JOBS_RATELIMIT_MAX_MS": ("RATE_LIMIT_MAX", milliseconds()),
    "JOBS_REAPER_ENABLED": ("REAPER_ENABLED", boolean),
}


def jobqueue() -> dict[str, Any]:
    """Return `JOBQUEUE`: the JOBS_* variables that are set, and nothing else."""
    values = {}
    for name, (key, parse) in JOB_SETTINGS.items():
        value = text(name)
        if value:
            values[key] = parse(name, value)
    return values


def databases(default_file: Path, base_dir: Path) -> dict[str, dict[str, Any]]:
    """Return `DATABASES`: what DATABASE_URL names, else the SQLite file `default_file`.

    A relative SQLite path counts from `base_dir`, so the site and its workers agree wherever
    they are started.
    """
    url = text("DATABASE_URL")
    if not url:
        return {"default": sqlite(default_file)}
    config = database_config(url)
    if config["ENGINE"] == SQLITE:
        if config["NAME"] in ("", ":memory:"):
            raise wrong("DATABASE_URL", url, "a file: a worker cannot see another's memory")
        options = config.get("OPTIONS", {})
        return {"default": sqlite(base_dir / config["NAME"], **options)}
    if config["ENGINE"] == POSTGRESQL:
        require_psycopg(url)
        config.setdefault("CONN_HEALTH_CHECKS", True)
    return {"default": config}


def sqlite(path: Path, **options: Any) -> dict[str, Any]:
    """Return the settings of an SQLite file that a site and its workers share."""
    return {"ENGINE": SQLITE, "NAME": str(path), "OPTIONS": {**SQLITE_OPTIONS, **options}}


def database_config(url: str) -> dict[str, Any]:
    """Return what the URL says, as Django wants it."""
    shape = (
        "a URL such as postgres://user:password@host:5432/name or sqlite:////folder/file.sqlite3"
    )
    try:
        with warnings.catch_warnings():
            # An unknown scheme warns; it is refused below.
            warnings.simplefilter("ignore")
            config: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError:
        raise wrong("DATABASE_URL", without_password(url), shape) from None
    known = config.get("ENGINE") in ENGINES
    if not known or (config["ENGINE"] != SQLITE and not config["NAME"]):
        raise wrong("DATABASE_URL", without_password(url), shape)
    return config


def without_password(url: str) -> str:
    """Return the URL as it may be printed."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url)


def require_psycopg(url: str) -> None:
    """Fail early and clearly when PostgreSQL is asked for and its driver is not there."""
    try:
        importlib.import_module("psycopg")
    except ImportError:
        raise ImproperlyConfigured(
            f'DATABASE_URL is "{without_password(url)}", and psycopg is not installed; '
            "run pip install -e '.[demo,postgres]' here, or leave DATABASE_URL out for SQLite."
        ) from None


def has_tasks_framework() -> bool:
    """Whether Django's Tasks are here: in Django itself since 6.0, else in a package."""
    return any(importlib.util.find_spec(name) for name in ("django.tasks", "django_tasks"))
