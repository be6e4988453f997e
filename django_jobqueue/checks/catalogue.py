"""Every id and the mistake it stands for. An id is never given to another mistake."""

from collections.abc import Mapping

from django.core import checks

PREFIX = "django_jobqueue"

CATALOGUE: Mapping[str, str] = {
    "E001": "a key of `JOBQUEUE` is unknown",
    "E002": "a value of `JOBQUEUE` cannot be used",
    "E003": "a `jobs` module is there and cannot be imported",
    "E004": "psycopg is missing, too old, or psycopg2 is in its place",
    "E005": "SQLite is too old for RETURNING",
    "E006": "`pool` is set together with `CONN_MAX_AGE`",
    "E007": "a registered type is longer than its column",
    "E008": "MySQL or MariaDB is too old for SKIP LOCKED",
    "E009": "an option of a task backend is unknown",
    "E010": "a value in the options of a task backend cannot be used",
    "E011": "a task backend of this package in `TASKS` cannot be imported",
    "E012": "`TASKS` names this package, which is not in `INSTALLED_APPS`",
    "W001": "`WORKER_MODE` is no mode; workers run as `all`",
    "W002": "`WORKER_CONCURRENCY` is 0 or less; workers run no job",
    "W003": "`SYSTEM_MODE_EXTRA_TYPES` names types without a handler",
    "W004": "`LEASE_CAP` is under 15 seconds; meant for tests",
    "W005": "SQLite's transactions do not begin as IMMEDIATE",
    "W006": "SQLite's journal mode is not WAL",
    "W007": "the isolation level of MySQL is not READ COMMITTED",
    "W008": "the port is that of PgBouncer, and `NOTIFY` is on",
    "W009": "the longest wait before a retry is shorter than the first",
    "W010": "a lease lasts an hour or longer",
    "W011": "`STUCK_THRESHOLD` is shorter than a lease",
    "W012": "`SHUTDOWN_GRACE` is longer than any job may run",
    "W013": "jobs are written to another database than `default`",
    "W014": "`USE_TZ` is off",
    "W015": "the database could not be asked",
    "W016": "a schedule stands on what no registered handler is",
    "I001": "`PURGE_ENABLED` is off",
    "I002": "`REAPER_ENABLED` is off",
}

KINDS: Mapping[str, type[checks.CheckMessage]] = {
    "E": checks.Error,
    "W": checks.Warning,
    "I": checks.Info,
}


def message(number: str, text: str, hint: str) -> checks.CheckMessage:
    """Return the message with the id `number` of the catalogue; its letter is its level.

    Raises LookupError for a number that the catalogue does not list.
    """
    if number not in CATALOGUE:
        raise LookupError(f"{number} is not in the catalogue of checks; add it there.")
    kind = KINDS[number[0]]
    return kind(text, hint=hint, id=f"{PREFIX}.{number}")  # type: ignore[call-arg,arg-type]
