"""Can the database be used? It answers, and has our tables as they are now."""

from ..models import Job
from ..worker.preflight import missing_migrations
from .bounded import NoAnswer, ask
from .report import Problem, Report

PROBE = "ready"


def ready(*, using: str | None = None) -> Report:
    """Report whether the database answers in time and has every migration of this package.

    `using`: the alias of the jobs, by default where they are written.
    """
    alias = using or Job.objects.write_alias
    try:
        missing = ask(alias, missing_migrations)
    except NoAnswer as error:
        return Report(PROBE, (away(alias, error),))
    if missing:
        return Report(PROBE, (unmigrated(alias, missing),))
    return Report(PROBE)


def away(alias: str, error: NoAnswer) -> Problem:
    """Return the problem of a database that does not answer."""
    return Problem(
        "database-away",
        f'The database "{alias}" does not answer: {error}. '
        f'Start it, or correct DATABASES["{alias}"].',
    )


def unmigrated(alias: str, missing: list[str]) -> Problem:
    """Return the problem of a database that lacks these migrations."""
    return Problem(
        "migrations-missing",
        f'The database "{alias}" lacks migrations: {", ".join(missing)}. '
        "Run: python manage.py migrate",
    )
