import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from django.db import connections

from tests import databases, throwaway_postgres
from tests.processes import Site
from tests.testapp.meeting import Meeting

# How long an example takes tells of the machine, not of the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


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


@pytest.fixture
def jobqueue(settings):
    """Change some of the package's settings for one test."""
    chosen = {}

    def change(**values):
        chosen.update(values)
        settings.JOBQUEUE = dict(chosen)

    return change


@pytest.fixture
def meeting():
    made = Meeting()
    yield made
    made.close()


@pytest.fixture
def site(transactional_db, tmp_path):
    """Make sites for worker processes: `site("A_LINE = 1", POLL_INTERVAL=60)`."""
    folders = itertools.count()

    def make(*lines, **values):
        folder = tmp_path / f"site{next(folders)}"
        folder.mkdir()
        quick = {"POLL_INTERVAL": 0.05, "RETRY_BASE": 0.01, "RETRY_MAX": 0.02}
        return Site(folder, f"JOBQUEUE = {quick | values!r}", *lines)

    return make


@pytest.fixture
def reader(monkeypatch):
    """The real SDK behind the metrics API for one test; returns its reader in memory."""
    from opentelemetry.metrics import NoOpMeterProvider, _internal
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    # The public setter works once a process; each test brings its own.
    monkeypatch.setattr(_internal, "_METER_PROVIDER", provider)
    _internal._PROXY_METER_PROVIDER.on_set_meter_provider(provider)
    yield reader
    _internal._PROXY_METER_PROVIDER.on_set_meter_provider(NoOpMeterProvider())
    provider.shutdown()
