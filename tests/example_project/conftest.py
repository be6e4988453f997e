import os
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import databases

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 100
# Variables of the person who runs the tests must not change what the site does.
FOREIGN = ("JOBS_", "OTEL_", "DATABASE_URL", "DEBUG", "SECRET_KEY", "DJANGO_", "MEDIA_", "COLUMNS")


@dataclass
class Site:
    """The example project with a database of its own, in processes of its own."""

    folder: Path
    url: str

    @property
    def environ(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        return kept | {
            "DATABASE_URL": self.url,
            "MEDIA_ROOT": str(self.folder / "media"),
            "SECRET_KEY": "only for tests",
            "SCAN_MS": "40",
            "JOBS_RETRY_BASE_MS": "50",
            "JOBS_RETRY_MAX_MS": "100",
            "JOBS_POLL_MS": "20",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *arguments]

    def manage(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @property
    def database(self) -> Path:
        return self.folder / "site.sqlite3"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read the SQLite database from outside."""
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, f"sqlite:///{tmp_path / 'site.sqlite3'}")


@pytest.fixture
def postgresql_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    if databases.chosen_kind(os.environ) != databases.POSTGRESQL:
        pytest.skip("this run is about another database")
    import psycopg

    server = request.getfixturevalue("database_server")
    name = f"example_{secrets.token_hex(4)}"
    with psycopg.connect(databases.url_of(server), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield Site(tmp_path, databases.url_of({**server, "NAME": name}))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
