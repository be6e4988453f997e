"""What throughput has to know of a system to run it as its users do."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

from tests.benchmarks.processes import environ, finish

PYTHON = sys.executable


def environ_of_url(url):
    return environ(DATABASE_URL=url)


def no_problem():
    return None


def nothing(_database):
    return None


@dataclass(frozen=True)
class Contender:
    """A system in one configuration.

    `commands` start its workers, `remaining(database)` counts the jobs that have not ended well
    by the system's own state, `problem()` says why it cannot run, and `expected` is a first
    guess of its jobs a second, for how many jobs to enqueue.
    """

    name: str
    module: str
    how: str
    commands: Sequence[Sequence[str]]
    remaining: Callable
    expected: int
    schema: Callable | None = None
    environ: Callable = environ_of_url
    distributions: Sequence[str] = ()
    problem: Callable = no_problem
    clean: Callable = nothing
    in_quick_runs: bool = True

    @property
    def label(self):
        return self.module

    def why_not(self):
        """Return why this contender cannot be measured here, or None."""
        missing = [name for name in self.distributions if not installed(name)]
        if missing:
            return f"{', '.join(missing)} could not be installed"
        return self.problem()

    def fill(self, database, total):
        """Enqueue the jobs."""
        command = [PYTHON, "-m", "tests.benchmarks.systems.fill", self.module, str(total)]
        finish(command, self.environ(database.url), seconds=600)


def installed(distribution):
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def counting(query):
    """Return a `remaining` that asks the database."""

    def remaining(database):
        with database.connect() as connection:
            return connection.execute(query).fetchone()[0]

    return remaining
