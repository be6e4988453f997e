"""What every measure works with: databases of its own, worker processes, and a progress line."""

import contextlib
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from tests import databases
from tests.benchmarks.processes import SITE, finish, site_environ, start

PREFIX = "jobqueue_bench"
RUNS = 5

ADMIN_SITE = "tests.settings"


@dataclass(frozen=True)
class Database:
    """A database that the benchmark made and will drop."""

    url: str

    @property
    def dsn(self):
        return self.url

    @property
    def name(self):
        return databases.settings_of(self.url)["NAME"]

    def connect(self, **options):
        """Return a new psycopg connection in autocommit."""
        return psycopg.connect(self.url, autocommit=True, **options)


def jobqueue_schema(database):
    """Create the tables of this project."""
    migrate(database, SITE)


def admin_schema(database):
    """Create the tables of a site that has an admin too."""
    migrate(database, ADMIN_SITE)


def migrate(database, module):
    finish(
        [sys.executable, "-m", "django", "migrate", "--verbosity=0"],
        site_environ(database.url, module=module),
    )


class Bench:
    """One run of the benchmark: how much to do, and with what.

    Use it as a context manager: at its end every database that it made is gone.
    """

    def __init__(self, *, url, quick=False, runs=None, peers=True):
        self.quick = quick
        self.runs = runs or (1 if quick else RUNS)
        self.peers = peers
        self.url = url
        self.started_at = time.monotonic()
        self._templates = {}
        self._made = 0
        self._cleanup = contextlib.ExitStack()

    def __enter__(self):
        self.folder = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory()))
        return self

    def __exit__(self, *_):
        for template in self._templates.values():
            self._drop(template.name)
        self._cleanup.close()

    def scale(self, full, quick):
        """Return the number for the kind of run that this is."""
        return quick if self.quick else full

    def log(self, text):
        """Print a line of progress, with the seconds since the start."""
        print(f"[{time.monotonic() - self.started_at:6.1f} s] {text}", flush=True)

    def new_folder(self, label):
        """Return a new empty folder that is removed at the end."""
        self._made += 1
        folder = self.folder / f"{self._made:04}-{label}"
        folder.mkdir()
        return folder

    @contextlib.contextmanager
    def database(self, label, schema=jobqueue_schema):
        """Create a database with `schema(database)` applied; drop it at the end, used or not.

        A schema is applied once, to a template that further databases are copies of.
        """
        self._made += 1
        name = f"{PREFIX}_{label}_{os.getpid()}_{self._made}"
        template = self._template(schema).name if schema else "template0"
        self._admin("CREATE DATABASE {} TEMPLATE {}", name, template)
        try:
            yield self._database(name)
        finally:
            self._drop(name)

    @contextlib.contextmanager
    def worker(
        self, database, *, slots=16, processes=1, settings=None, options=(), debug=False, environ=()
    ):
        """Start a worker of this project on the database, ready to work; ends it by SIGTERM.

        `settings` is the `JOBQUEUE` dict as JSON holds it, `options` are further options of
        `run_jobworker`, `environ` further variables. What it prints is in `.log`.
        """
        command = [sys.executable, "-m", "django", "run_jobworker", f"--concurrency={slots}"]
        if processes > 1:
            command.append(f"--processes={processes}")
        with start(
            [*command, *options],
            site_environ(database.url, settings, debug=debug) | dict(environ),
            self.new_folder("worker"),
        ) as worker:
            worker.wait_until_it_says(" started: ", times=processes)
            yield worker

    def _template(self, schema):
        if schema not in self._templates:
            self._made += 1
            template = self._database(f"{PREFIX}_template_{os.getpid()}_{self._made}")
            self._admin("CREATE DATABASE {} TEMPLATE {}", template.name, "template0")
            self._templates[schema] = template
            schema(template)
        return self._templates[schema]

    def _database(self, name):
        return Database(databases.url_of(databases.settings_of(self.url) | {"NAME": name}))

    def _drop(self, name):
        self._admin("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def _admin(self, text, *names):
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL(text).format(*map(sql.Identifier, names)))
