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
        text = f'The database "{alias}" does not answer: {error}.'
        return Report(PROBE, (Problem("database-away", text),))
    if missing:
        text = (
            f'The database "{alias}" lacks migrations: {", ".join(missing)}. '
            "Run: python manage.py migrate"
        )
        return Report(PROBE, (Problem("migrations-missing", text),))
    return Report(PROBE)
