"""What must be right before a worker starts. Each mistake gets one line with its remedy."""

from collections.abc import Collection, Iterable, Sequence

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from .. import healthfile, registry
from ..conf import CHECK_TAG, DATABASE_CHECK_TAG, settings
from ..exceptions import SetupError
from ..logs import get_logger
from ..models import Job
from ..task_backend import site

logger = get_logger(__name__)

PSYCOPG_REMEDY = 'Install it: pip install "django-jobqueue[postgres]".'


def preflight(
    using: str | None,
    types: Collection[str] | None,
    queues: Sequence[str] | None,
    health_file: str | None = None,
) -> None:
    """Raise SetupError when a worker with these options cannot run."""
    check_no_transaction()
    check_system()
    check_task_backends()
    check_health_file(settings.HEALTH_FILE if health_file is None else health_file)
    check_names("--queues", queues)
    check_names("--types", types)
    check_types(types)
    connection = check_alias(Job.objects.write_alias if using is None else using)
    was_open = connection.connection is not None
    try:
        check_connection(connection)
        check_migrations(connection)
        check_system(DATABASE_CHECK_TAG, [connection.alias])
    finally:
        if not was_open:  # The main thread needs none while the worker runs.
            connection.close()


def check_no_transaction() -> None:
    """Refuse to run inside a transaction of the caller's, whose jobs no slot would see."""
    inside = [c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block]
    if inside:
        raise SetupError(
            f"run_jobworker was called inside a transaction on {', '.join(inside)}, whose jobs no "
            "worker sees. In tests use TransactionTestCase, or call the handler itself."
        )


def check_system(tag: str = CHECK_TAG, databases: Sequence[str] = ()) -> None:
    """Refuse to start with an error of the package's own system checks; log the other messages.

    Those that connect look only at `databases`.
    """
    # None would mean all of them since Django 6.1.
    heed(checks.run_checks(tags=[tag], databases=list(databases)))


def check_task_backends() -> None:
    """Refuse to start with wrong options of a task backend, which Django checks without our tag."""
    for alias in site.aliases():
        heed(site.backend(alias).check())


def heed(messages: Iterable[checks.CheckMessage]) -> None:
    """Raise SetupError for the first error; log the other messages."""
    for message in messages:
        if message.is_silenced():
            continue
        line = f"{message.msg} {message.hint or ''}".strip()
        if message.is_serious():
            raise SetupError(f"{line} ({message.id})")
        logger.log(message.level, "System check: %s (%s)", line, message.id)


def check_health_file(path: str | None) -> None:
    """Refuse a health file that cannot be written."""
    problem = None if path is None else healthfile.problem_of(path)
    if problem is not None:
        raise SetupError(
            f'The health file "{path}" cannot be written: {problem}. '
            "Name a file in a folder that the worker may write to."
        )


def check_names(option: str, names: Collection[str] | None) -> None:
    """Refuse an option that was given without a single name."""
    if names is not None and not names:
        raise SetupError(f"{option} is empty. Name one or more, with commas, or leave it out.")


def check_types(types: Collection[str] | None) -> None:
    """Refuse a type that no handler of this process runs."""
    unknown = sorted(set(types or ()) - set(registry.types()))
    unknown = [job_type for job_type in unknown if not site.know(job_type)]
    if unknown:
        raise SetupError(
            f"--types names {', '.join(unknown)}, for which no handler is registered. "
            f"Registered are: {', '.join(registry.types()) or 'none'}."
        )


def check_alias(using: str) -> BaseDatabaseWrapper:
    """Return the connection of an alias; refuse an unknown one, or one without its driver."""
    if using not in connections:
        raise SetupError(
            f'The database alias "{using}" is not in DATABASES. '
            f"Known are: {', '.join(sorted(connections))}."
        )
    try:
        connection = connections[using]
    except ImproperlyConfigured as error:
        remedy = PSYCOPG_REMEDY if "psycopg" in str(error) else ""
        raise SetupError(f'The database "{using}": {first_line(error)} {remedy}'.strip()) from error
    driver: str = getattr(connection, "Database").__name__  # noqa: B009 (not in its type)
    if connection.vendor == "postgresql" and driver != "psycopg":
        raise SetupError(
            f'The database "{using}" is reached through {driver}; '
            f"django-jobqueue needs psycopg 3. {PSYCOPG_REMEDY}"
        )
    return connection


def check_connection(connection: BaseDatabaseWrapper) -> None:
    """Refuse to start when the database cannot be reached."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        raise SetupError(
            f"The database {described(connection)} cannot be reached: {first_line(error)}. "
            f'Start it, or correct DATABASES["{connection.alias}"].'
        ) from error


def missing_migrations(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of this package's migrations that a database lacks."""
    app_label = Job._meta.app_label
    executor = MigrationExecutor(connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == app_label]
    return [m.name for m, _ in executor.migration_plan(targets) if m.app_label == app_label]


def check_migrations(connection: BaseDatabaseWrapper) -> None:
    """Refuse to start on a database that lacks migrations of this package."""
    app_label = Job._meta.app_label
    missing = missing_migrations(connection)
    if missing:
        option = "" if connection.alias == DEFAULT_DB_ALIAS else f" --database {connection.alias}"
        raise SetupError(
            f"The database {described(connection)} lacks migrations of {app_label}: "
            f"{', '.join(missing)}. Run: python manage.py migrate{option}"
        )


def described(connection: BaseDatabaseWrapper) -> str:
    """Say which database a connection means, without its password."""
    config = connection.settings_dict
    place = ":".join(str(part) for part in (config["HOST"], config["PORT"]) if part)
    where = f" at {place}" if place else ""
    return f'"{connection.alias}" ({connection.vendor} {config["NAME"]}{where})'


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, without a closing full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
