"""The only reader of the site's settings: one dict, `JOBQUEUE`, over the defaults here.

`settings.POLL_INTERVAL` and its like give parsed values: every duration in seconds as a float
(None where a setting may be off), whether the site wrote seconds or a timedelta.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from . import masking
from .exceptions import InvalidSettings, shown
from .logs import get_logger
from .states import WorkerMode

logger = get_logger(__name__)

SETTINGS_NAME = "JOBQUEUE"

CHECK_TAG = "jobqueue"
"""Under which Django runs the package's system checks: `manage.py check --tag jobqueue`."""

DATABASE_CHECK_TAG = "jobqueue_database"
"""Of those checks, the ones that connect."""

Parser = Callable[[Any], Any]

MOST_SLOTS = 1_000
"""Each slot is a thread, with a connection of its own when its handlers query."""

MODES = {mode.value: mode for mode in WorkerMode}

TEN_YEARS = 10 * 365 * 24 * 3600.0


class Unusable(ValueError):
    """A value that a parser refuses; the text says what it expects."""


def boolean(value: Any) -> bool:
    """Accept True or False only: a string "False" is a mistake, not a truth."""
    if isinstance(value, bool):
        return value
    raise Unusable("True or False")


def whole_number(lowest: int | None = None, highest: int = 2**31 - 1) -> Parser:
    """Return a parser of integers from `lowest` (None: any) to `highest`."""

    def parse(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            if (lowest is None or value >= lowest) and value <= highest:
                return value
        if lowest is None:
            raise Unusable(f"a whole number, at most {highest}")
        raise Unusable(f"a whole number from {lowest} to {highest}")

    return parse


def duration(*, least: float = 0.0, optional: bool = False) -> Parser:
    """Return a parser of durations: seconds or a timedelta, at least `least` seconds."""

    def parse(value: Any) -> float | None:
        if value is None and optional:
            return None
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if isinstance(seconds, int | float) and not isinstance(seconds, bool):
            if least <= seconds <= TEN_YEARS:  # False for NaN too.
                return float(seconds)
        ending = ", or None" if optional else ""
        raise Unusable(f"seconds or a timedelta, at least {least:g} s and finite{ending}")

    return parse


def worker_mode(value: Any) -> Any:
    """Accept a string or a callable; which mode it names is read at every claim."""
    if value is None or isinstance(value, str) or callable(value):
        return value
    raise Unusable('"all", "system" or "off", or a callable that returns one of them')


def names(what: str) -> Parser:
    """Return a parser of several `what`: a list of strings, or one string with commas."""

    def parse(value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = value.split(",")
        if isinstance(value, list | tuple | set | frozenset):
            if all(isinstance(name, str) for name in value):
                return tuple(name.strip() for name in value if name.strip())
        raise Unusable(f"a list of {what}, or one string with commas")

    return parse


def text(value: Any) -> str | None:
    """Accept a string without a path separator, or None."""
    if value is None or (isinstance(value, str) and value and not set(value) & {"/", "\\", "\0"}):
        return value
    raise Unusable("a non-empty string without a path separator, or None")


def path(value: Any) -> str | None:
    """Accept the path of a file, or None."""
    if value is None:
        return None
    if isinstance(value, str | os.PathLike):
        name = os.fspath(value)
        if isinstance(name, str) and name and "\0" not in name:
            return name
    raise Unusable("the path of a file, or None")


def share(value: Any) -> float:
    """Accept a number from 0 to 1."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise Unusable("a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of `JOBQUEUE`: its default and how a value is read."""

    default: Any
    parse: Parser


SETTINGS: Mapping[str, Setting] = {
    "WORKER_MODE": Setting("all", worker_mode),
    "WORKER_CONCURRENCY": Setting(2, whole_number(highest=MOST_SLOTS)),
    "POLL_INTERVAL": Setting(5, duration(least=0.001)),
    "JOB_TIMEOUT": Setting(600, duration()),
    "LEASE_CAP": Setting(90, duration(least=0.001, optional=True)),
    "SYSTEM_MODE_EXTRA_TYPES": Setting([], names("job types")),
    "MAX_ATTEMPTS": Setting(3, whole_number(1, 32_767)),
    "RETRY_BASE": Setting(2, duration()),
    "RETRY_MAX": Setting(60, duration()),
    "RATE_LIMIT_MAX_HITS": Setting(10, whole_number(0, 32_767)),
    "RATE_LIMIT_BASE": Setting(30, duration()),
    "RATE_LIMIT_MAX": Setting(900, duration()),
    "SHUTDOWN_GRACE": Setting(25, duration()),
    "REAPER_ENABLED": Setting(True, boolean),
    "REAPER_INTERVAL": Setting(30, duration(least=0.001)),
    "STUCK_THRESHOLD": Setting(1800, duration(least=0.001)),
    "HISTORY_RETENTION": Setting(timedelta(days=30), duration()),
    "PURGE_ENABLED": Setting(True, boolean),
    "MAX_PAYLOAD_BYTES": Setting(1024 * 1024, whole_number(2)),
    "MAX_RESULT_BYTES": Setting(1024 * 1024, whole_number(2)),
    "NOTIFY": Setting(True, boolean),
    "TEMP_PREFIX": Setting(None, text),
    "NODES_ENABLED": Setting(False, boolean),
    "MAX_ABANDONED": Setting(100, whole_number(0)),
    "MASKED_KEYS": Setting([], names("keys")),
    "HEALTH_FILE": Setting(None, path),
    "HEALTH_MAX_AGE": Setting(60, duration(least=1)),
    "HEALTH_MAX_OVERDUE": Setting(600, duration()),
    "HEALTH_MAX_STUCK": Setting(0, whole_number(0)),
    "HEALTH_MAX_FAILING": Setting(0.5, share),
}

DEFAULTS: Mapping[str, Any] = {key: setting.default for key, setting in SETTINGS.items()}


@dataclass(frozen=True, slots=True)
class Problem:
    """A wrong key or value of `JOBQUEUE`, in one sentence and with a remedy."""

    key: str
    message: str
    hint: str
    unknown_key: bool = False


def site_settings() -> Any:
    """Return `JOBQUEUE` as the site wrote it; an empty dict when it did not."""
    return getattr(django_settings, SETTINGS_NAME, None) or {}


def is_set(key: str) -> bool:
    """Whether the site itself gives a value to `key`."""
    site = site_settings()
    return isinstance(site, Mapping) and key in site


def tasks_setting() -> dict[str, Any]:
    """Return Django's `TASKS`; empty where it is missing, or no dict."""
    tasks = getattr(django_settings, "TASKS", None)
    return tasks if isinstance(tasks, dict) else {}


def times_are_aware() -> bool:
    """Whether datetimes of this site carry a time zone (`USE_TZ`)."""
    return bool(django_settings.USE_TZ)


def temp_prefix() -> str:
    """Return how the names of this site's temporary files begin; never empty.

    `TEMP_PREFIX`, or one made from the site. Projects often share a name such as `config`, so
    the database is part of it: one site's janitor must not remove another site's files.
    """
    if settings.TEMP_PREFIX is not None:
        return str(settings.TEMP_PREFIX)
    module = getattr(django_settings, "SETTINGS_MODULE", None) or "site"
    name = re.sub(r"\W", "", str(module).partition(".")[0])
    database = django_settings.DATABASES.get("default", {})
    place = "\n".join(str(database.get(key, "")) for key in ("ENGINE", "HOST", "PORT", "NAME"))
    digest = hashlib.sha256(f"{module}\n{place}".encode()).hexdigest()
    return f"jobqueue-{name}-{digest[:8]}-"


def problems() -> Iterator[Problem]:
    """Yield everything wrong with `JOBQUEUE`: for the system checks and for clear errors."""
    site = site_settings()
    if not isinstance(site, Mapping):
        yield Problem(
            SETTINGS_NAME,
            f"{SETTINGS_NAME} is {type(site).__name__} {site!r}; expected a dict.",
            f'Write {SETTINGS_NAME} = {{"WORKER_CONCURRENCY": 4}}, or leave it out.',
        )
        return
    for key, value in site.items():
        if key not in SETTINGS:
            yield Problem(
                str(key),
                f"{SETTINGS_NAME}[{key!r}] is not a setting of django-jobqueue.",
                f"Remove it, or use one of: {', '.join(sorted(SETTINGS))}.",
                unknown_key=True,
            )
            continue
        try:
            SETTINGS[key].parse(value)
        except Unusable as expected:
            yield Problem(
                key,
                f"{SETTINGS_NAME}[{key!r}] is {shown(value)}; expected {expected}.",
                f"Correct it, or leave it out for the default, {DEFAULTS[key]!r}.",
            )


_warned: set[str] = set()


def warn_once(logger: logging.Logger, event: str, *details: object) -> None:
    """Log a warning the first time it is given; a claim reads its settings many times a second."""
    message = event % details
    if message not in _warned:
        _warned.add(message)
        logger.warning(event, *details)


def parse_worker_mode(value: Any) -> WorkerMode:
    """Return the worker mode that a setting, or the callable given as one, names now.

    Trimmed, in any case; unset is the default. Anything else falls open to `all` with one
    warning: a misspelt word must not stop a site's jobs.
    """
    try:
        named = value() if callable(value) else value
    except Exception as error:  # noqa: BLE001 (the site's code)
        name = getattr(value, "__qualname__", shown(value))
        reason = f"{type(error).__name__}: {error}"
        warn_once(
            logger, "The WORKER_MODE callable %s failed; workers run as all. %s", name, reason
        )
        return WorkerMode.ALL
    if named is None:
        return WorkerMode(DEFAULTS["WORKER_MODE"])
    word = named.strip().lower() if isinstance(named, str) else ""
    if word in MODES:
        return MODES[word]
    warn_once(
        logger,
        "WORKER_MODE is %s; expected all, system or off. Workers run as all.",
        shown(named),
    )
    return WorkerMode.ALL


class Settings:
    """The parsed settings as attributes, read once and again after `setting_changed`."""

    def __getattr__(self, key: str) -> Any:
        """Return the parsed value of `key`; a wrong value raises InvalidSettings naming it."""
        if key not in SETTINGS:
            raise AttributeError(f"django-jobqueue has no setting {key!r}")
        site = site_settings()
        if not isinstance(site, Mapping):
            raise InvalidSettings(f"{SETTINGS_NAME} is {site!r}; expected a dict.")
        try:
            value = SETTINGS[key].parse(site.get(key, DEFAULTS[key]))
        except Unusable as expected:
            raise InvalidSettings(
                f"{SETTINGS_NAME}[{key!r}] is {shown(site[key])}; expected {expected}."
            ) from None
        self.__dict__[key] = value
        return value

    def reload(self) -> None:
        """Forget what was read; the next access reads the site's settings again."""
        self.__dict__.clear()
        _warned.clear()


settings = Settings()


def reload_settings(*, setting: str, **_: Any) -> None:
    """Follow `override_settings`."""
    if setting == SETTINGS_NAME:
        settings.reload()


setting_changed.connect(reload_settings)


def stuck_threshold() -> timedelta:
    """Return how long a running job may be without a lease before it counts as stuck."""
    return timedelta(seconds=settings.STUCK_THRESHOLD)


def masked_keys() -> tuple[str, ...]:
    """Return `MASKED_KEYS`; none when it cannot be used, as masking runs where errors are told."""
    try:
        keys: tuple[str, ...] = settings.MASKED_KEYS
    except ImproperlyConfigured:
        return ()
    return keys


masking.extend_with(masked_keys)
