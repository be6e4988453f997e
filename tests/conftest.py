import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from tests import databases, throwaway_postgres


@pytest.fixture(scope="session")
def database_server() -> Iterator[databases.Settings]:
    """The PostgreSQL server of this run: the one that is named or here, else one of our own."""
    settings = databases.chosen_settings(os.environ)
    if databases.chosen_url(os.environ) is not None or databases.server_answers(settings):
        yield settings
        return
    with throwaway_postgres.running() as url:
        yield databases.settings_of(url)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_keepdb: bool,
) -> None:
    """Point Django at the server, and give the run a test database that no other run uses."""
    settings = connections["default"].settings_dict
    if databases.chosen_kind(os.environ) == databases.SQLITE:
        # A file, because the tests connect from threads and processes.
        settings["TEST"]["NAME"] = str(Path(tmp_path_factory.mktemp("db")) / "test.sqlite3")
        return
    settings.update(request.getfixturevalue("database_server"))
    if not django_db_keepdb:
        settings["TEST"]["NAME"] = f"test_jobqueue_{secrets.token_hex(4)}"
