"""The database goes away under load and comes back: nothing is lost, nothing starts twice.

The server is the test's own. Leases are short, so an outage outlasts them.
"""

import contextlib
import threading
import time

import pytest

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests import databases
from tests.marks import on_postgresql
from tests.processes import Site, eventually
from tests.proxy import Proxy
from tests.worker.own_server import own_server

pytestmark = [pytest.mark.usefixtures("transactional_db"), on_postgresql]

HARD = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp.hard"]'

LEASE_SECONDS = 2
QUICK = {"LEASE_CAP": LEASE_SECONDS, "REAPER_INTERVAL": 0.5}
OUTAGE_SECONDS = 2 * LEASE_SECONDS + 1

SLACK_SECONDS = 5
"""The contract: gone at the latest this long after the grace."""


@pytest.fixture(scope="module")
def module_server(tmp_path_factory):
    with own_server(tmp_path_factory.mktemp("own_server")) as server:
        yield server


@pytest.fixture
def server(module_server, transactional_db):
    with module_server.for_one_test() as server:
        yield server


@pytest.fixture
def away(server, site):
    """Make sites whose database is the test's own server."""

    def make(*lines, **values):
        made = site(HARD, *lines, **(QUICK | values))
        made.url = server.url
        return made

    return make


def pass_by(seconds):
    threading.Event().wait(seconds)


def assert_each_started_once(server, notebook, jobs):
    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert server.ends() == {(JobStatus.SUCCEEDED, 1): len(jobs)}


def load(server, notebook, seconds, number):
    return server.enqueue("hard.wait", {**notebook.payload, "seconds": seconds}, number)


def test_an_outage_of_more_than_two_leases_under_load(server, away, notebook):
    """The first jobs outlast the outage, others end during it, and many wait behind them."""
    jobs = load(server, notebook, OUTAGE_SECONDS + 3, 2)
    jobs += load(server, notebook, 0.2, 120)
    project = away()
    with (
        project.worker("--concurrency", "4") as first,
        project.worker("--processes", "2", "--concurrency", "3") as second,
    ):
        eventually(lambda: len(notebook.ids()) > 20, "the workers do not run")
        server.stop()
        pass_by(OUTAGE_SECONDS)
        assert len(notebook.ids()) < len(jobs)
        server.start()
        eventually(
            lambda: server.count(status=JobStatus.SUCCEEDED) == len(jobs),
            f"not all succeeded: {first.errors}{second.errors}",
        )
        for worker in (first, second):
            worker.terminate()
            assert worker.exit_code() == 0

    assert_each_started_once(server, notebook, jobs)
    assert "write-failed" not in first.errors + second.errors
    assert "claim-lost" not in first.errors + second.errors


def test_every_backend_is_terminated_again_and_again_under_load(server, away, notebook):
    jobs = load(server, notebook, 0.05, 240)
    project = away()
    with (
        project.worker("--concurrency", "4") as first,
        project.worker("--concurrency", "4") as second,
    ):
        for _ in range(8):
            before = len(notebook.ids())
            eventually(
                lambda before=before: (
                    len(notebook.ids()) > before + 5 or len(notebook.ids()) == len(jobs)
                ),
                "the workers stand still",
            )
            server.terminate_all_others()
        eventually(
            lambda: server.count(status=JobStatus.SUCCEEDED) == len(jobs),
            f"not all succeeded: {first.errors}{second.errors}",
        )
        for worker in (first, second):
            worker.terminate()
            assert worker.exit_code() == 0

    assert_each_started_once(server, notebook, jobs)


@pytest.mark.parametrize("options", [[], ["--processes", "2"]])
def test_a_stop_is_bounded_while_the_database_is_away(server, away, notebook, options):
    grace = 1
    (job,) = load(server, notebook, 30, 1)
    with away(SHUTDOWN_GRACE=grace).worker(*options, "--concurrency", "1") as worker:
        eventually(notebook.ids, "the job did not start")
        began = 2 if options else 1
        eventually(lambda: worker.output.count(" started: ") == began, "a worker did not start")
        server.stop()
        try:
            worker.terminate()
            before = time.monotonic()

            assert worker.exit_code(grace + SLACK_SECONDS) == 0
            assert time.monotonic() - before < grace + SLACK_SECONDS
        finally:
            server.start()
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.RUNNING, 1)


def test_a_stop_is_bounded_while_the_database_stands_still(server, away, notebook):
    """It accepts connections and answers nothing."""
    grace = 0.5
    load(server, notebook, 30, 1)
    with away(SHUTDOWN_GRACE=grace).worker("--concurrency", "1") as worker:
        eventually(notebook.ids, "the job did not start")
        server.suspend()
        try:
            worker.terminate()

            assert worker.exit_code(grace + SLACK_SECONDS) == 0
        finally:
            server.resume()


# A connection that is half open


@contextlib.contextmanager
def behind_a_proxy(site, **values):
    """Yield a site whose connections go through a proxy, and the proxy."""
    made = site(HARD, **values)
    settings = databases.settings_of(made.url)
    proxy = Proxy((settings["HOST"], int(settings["PORT"])))
    led = {**settings, "HOST": "127.0.0.1", "PORT": str(proxy.port)}
    options = {"sslmode": "disable", "gssencmode": "disable"}
    made.lines = (*made.lines, f'DATABASES["default"]["OPTIONS"] = {options!r}')
    try:
        yield Site(made.folder, *made.lines, url=databases.url_of(led)), proxy
    finally:
        proxy.close()


def test_a_half_open_connection_is_given_up_and_nothing_starts_twice(site, notebook):
    """The proxy goes on taking bytes, so that TCP itself notices nothing."""
    lease = 6
    payload = {**notebook.payload, "seconds": 0.1}
    with behind_a_proxy(site, LEASE_CAP=lease, REAPER_INTERVAL=0.5) as (project, proxy):
        jobs = [*Job.objects.enqueue_many([JobRequest("hard.wait", payload) for _ in range(60)])]
        with project.worker("--concurrency", "4") as worker:
            for _ in range(2):
                before = len(notebook.ids())
                eventually(lambda before=before: len(notebook.ids()) > before + 8, "no start")
                proxy.freeze()
                frozen = len(notebook.ids())
                at = time.monotonic()
                # Each slot may have got one more job before.
                eventually(lambda frozen=frozen: len(notebook.ids()) > frozen + 4, "no recovery")
                # The TCP user timeout, a second until what failed is sent again, and two to spare.
                assert time.monotonic() - at < lease / 3 + 3
            eventually(
                lambda: Job.objects.filter(status=JobStatus.SUCCEEDED).count() == len(jobs),
                f"not all succeeded: {worker.errors}",
            )
            worker.terminate()
            assert worker.exit_code() == 0

    assert "the server was silent for" in worker.errors
    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert set(Job.objects.values_list("status", "attempts")) == {(JobStatus.SUCCEEDED, 1)}


def test_a_stop_ends_in_time_over_half_open_connections(site, notebook):
    grace = 0.5
    Job.objects.enqueue("hard.wait", {**notebook.payload, "seconds": 30})
    with (
        behind_a_proxy(site, SHUTDOWN_GRACE=grace) as (project, proxy),
        project.worker("--concurrency", "1") as worker,
    ):
        eventually(notebook.ids, "the job did not start")
        proxy.refusing = True
        proxy.freeze()
        worker.terminate()

        assert worker.exit_code(grace + SLACK_SECONDS) == 0


# A site whose transactions are stricter


@pytest.mark.parametrize("level", ["repeatable\\ read", "serializable"])
def test_a_worker_runs_on_at_a_stricter_isolation_level(site, notebook, level):
    jobs = Job.objects.enqueue_many(
        [JobRequest("test.note", notebook.payload) for _ in range(200)]
        + [JobRequest("test.flaky") for _ in range(5)]
    )
    options = {"options": f"-c default_transaction_isolation={level}"}
    project = site(f'DATABASES["default"]["OPTIONS"] = {options!r}')
    with (
        project.worker("--drain", "--concurrency", "8") as first,
        project.worker("--drain", "--concurrency", "8") as second,
    ):
        assert first.exit_code() == 0
        assert second.exit_code() == 0

    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs if job.type == "test.note")
    notes = Job.objects.filter(type="test.note")
    assert set(notes.values_list("status", "attempts")) == {(JobStatus.SUCCEEDED, 1)}
    assert not Job.objects.exclude(status=JobStatus.SUCCEEDED).exists()
