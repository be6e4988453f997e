"""`run_jobworker`: options in, one line for every mistake, an exit code out."""

import contextlib
import io
import os
import re
import signal
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from django_jobqueue.models import Job, WorkerProcess
from django_jobqueue.states import JobStatus
from tests import databases
from tests.processes import SECONDS, Site
from tests.worker.conftest import is_ours

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture(autouse=True)
def _quick(jobqueue):
    jobqueue(POLL_INTERVAL=0.05, RETRY_BASE=0.01, RETRY_MAX=0.02)


def worker(*options, **more):
    """Run the command in this process, and return what it printed."""
    output = io.StringIO()
    call_command("run_jobworker", *options, stdout=output, **more)
    for thread in threading.enumerate():
        if is_ours(thread):
            thread.join(SECONDS)
    return output.getvalue()


def assert_one_line(done, *words):
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("CommandError: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    return done.stderr


# What it does


def test_it_runs_jobs_and_says_what_it_did():
    Job.objects.enqueue("test.echo")
    Job.objects.enqueue("test.fail")

    lines = worker("--drain").splitlines()

    assert re.search(
        r": mode all, 2 slots, all queues, \d+ job types, database default\.$", lines[0]
    )
    assert lines[1].endswith("stopped (drained): 1 succeeded, 1 failed, 1 retry-scheduled.")
    assert lines[2] == "Left: nothing."
    assert len(lines) == 3


def test_options_override_the_settings(jobqueue):
    jobqueue(WORKER_CONCURRENCY=7)

    first = worker("--drain", "--concurrency", "3", "--queues", "a, b", "--types", "test.echo")

    assert ": mode all, 3 slots, queues a, b, 1 job types, database default." in first


def test_the_last_line_of_a_drain_counts_what_is_left_and_why():
    Job.objects.enqueue("test.echo", delay=86_400)
    Job.objects.enqueue("test.echo", queue="asleep")
    Job.objects.enqueue("of.another.deployment")
    Job.objects.pause("queue", "asleep")
    Job.objects.enqueue("test.echo")

    last = worker("--drain").splitlines()[-1]

    assert last == "Left: 3 (1 scheduled for later, 1 paused, 1 of other types or queues)."


def test_only_the_queues_and_types_asked_for_are_run():
    Job.objects.enqueue("test.echo", queue="a")
    Job.objects.enqueue("test.echo", queue="b")
    Job.objects.enqueue("test.async", queue="a")

    output = worker("--drain", "--queues", "a", "--types", "test.echo")

    assert Job.objects.get(status=JobStatus.SUCCEEDED).queue == "a"
    assert output.splitlines()[-1] == "Left: 2 (2 of other types or queues)."


def test_the_most_jobs_are_claimed_and_the_rest_is_left():
    for _ in range(5):
        Job.objects.enqueue("test.echo")

    output = worker("--max-jobs", "3", "--concurrency", "4")

    assert output.splitlines()[-1].endswith("(claimed as many jobs as it may): 3 succeeded.")
    assert Job.objects.ready().count() == 2


def test_in_this_process_it_returns_and_gives_the_signals_back():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    during = []

    class Watched(io.StringIO):
        def write(self, text):
            if " started: " in text:
                during.extend(map(signal.getsignal, (signal.SIGTERM, signal.SIGINT)))
            return super().write(text)

    call_command("run_jobworker", "--drain", stdout=Watched())

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    # A worker that says it has started can be told to stop.
    assert not set(during) & set(before)


def test_it_runs_outside_of_the_main_thread():
    Job.objects.enqueue("test.echo")
    outputs = []

    def run():
        with contextlib.closing(connection):
            output = io.StringIO()
            call_command("run_jobworker", "--drain", stdout=output)
            outputs.append(output.getvalue())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(SECONDS)

    assert "1 succeeded" in outputs[0]


def test_a_signal_stops_it_in_this_process_too(meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)

    def stop():
        guest = meeting.guest()
        os.kill(os.getpid(), signal.SIGTERM)
        guest.let_go("finished")

    stopping = threading.Thread(target=stop)
    stopping.start()
    output = worker("--concurrency", "1")
    stopping.join(SECONDS)

    assert "stopped (received SIGTERM): 1 succeeded." in output
    job.refresh_from_db()
    assert job.result == "finished"


@pytest.mark.parametrize("concurrency", ["0", "-1"])
def test_without_slots_it_warns_runs_nothing_and_stops(concurrency):
    Job.objects.enqueue("test.echo")
    stopping = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGTERM])

    class Watched(io.StringIO):
        def write(self, text):
            if " started: mode all, 0 slots" in text:
                stopping.start()
            return super().write(text)

    output = Watched()
    with pytest.warns(RuntimeWarning, match="runs no jobs"):
        call_command("run_jobworker", f"--concurrency={concurrency}", stdout=output)

    assert "stopped (received SIGTERM): no jobs." in output.getvalue()
    assert Job.objects.get().attempts == 0


def test_another_database_holds_the_jobs(site):
    """The jobs are in the test's database, which is not the site's default one."""
    Job.objects.enqueue("test.echo")
    project = site(
        'DATABASES = {"jobs": DATABASES["default"], "default": databases.sqlite_settings("none")}'
    )

    done = project.manage("run_jobworker", "--drain", "--database", "jobs")

    assert (done.returncode, done.stderr) == (0, "")
    assert "database jobs." in done.stdout
    assert "1 succeeded" in done.stdout
    assert done.stdout.splitlines()[-1] == "Left: nothing."
    assert Job.objects.get().status == JobStatus.SUCCEEDED
    assert not (project.folder / "none").exists()


def test_the_router_names_the_database_of_the_jobs(site):
    Job.objects.enqueue("test.echo")
    project = site(
        'DATABASES = {"jobs": DATABASES["default"], "default": databases.sqlite_settings("none")}',
        "class Router:",
        "    def db_for_write(self, model, **hints):",
        '        return "jobs" if model._meta.app_label == "django_jobqueue" else None',
        "DATABASE_ROUTERS = [Router()]",
        'SILENCED_SYSTEM_CHECKS = ["django_jobqueue.W013"]',
    )

    done = project.manage("run_jobworker", "--drain")

    assert (done.returncode, done.stderr) == (0, "")
    assert Job.objects.get().status == JobStatus.SUCCEEDED
    assert not (project.folder / "none").exists()


def test_the_help_explains_every_option(site):
    done = site().manage("run_jobworker", "--help")

    assert done.returncode == 0
    assert "Run a worker: claim jobs from the database and run their handlers." in done.stdout
    for option in ("concurrency", "queues", "types", "drain", "max-jobs", "database"):
        assert f"--{option}" in done.stdout


# What it refuses


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"WORKER_CONCURENCY": 4},
            ["JOBQUEUE['WORKER_CONCURENCY'] is not a setting", "WORKER_CONCURRENCY", "E001"],
        ),
        (
            {"POLL_INTERVAL": -1},
            ["JOBQUEUE['POLL_INTERVAL'] is -1; expected seconds or a timedelta", "Correct it"],
        ),
        ({"WORKER_CONCURRENCY": "4"}, ["JOBQUEUE['WORKER_CONCURRENCY'] is '4'", "whole number"]),
        ({"MAX_ATTEMPTS": 0}, ["JOBQUEUE['MAX_ATTEMPTS'] is 0", "from 1 to"]),
        ({"WORKER_MODE": 5}, ["JOBQUEUE['WORKER_MODE'] is 5", "all"]),
    ],
    ids=["unknown", "negative", "text", "zero", "mode"],
)
def test_a_wrong_setting_is_one_line(site, values, words):
    assert_one_line(site(**values).manage("run_jobworker", "--drain"), *words)


def test_a_doubtful_setting_is_a_warning_and_the_worker_runs(site):
    Job.objects.enqueue("test.echo")

    done = site(LEASE_CAP=5).manage("run_jobworker", "--drain")

    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "JOBQUEUE['LEASE_CAP'] is 5" in done.stderr.replace('"', "'")
    assert Job.objects.get().status == JobStatus.SUCCEEDED


def test_a_silenced_warning_is_not_shown(site):
    silenced = 'SILENCED_SYSTEM_CHECKS = ["django_jobqueue.W004"]'

    done = site(silenced, LEASE_CAP=5).manage("run_jobworker", "--drain")

    assert (done.returncode, done.stderr) == (0, "")


def test_settings_that_are_no_dict_are_one_line(site):
    done = site("JOBQUEUE = ['WORKER_CONCURRENCY']").manage("run_jobworker", "--drain")

    assert_one_line(done, "JOBQUEUE is list", "expected a dict")


def test_a_broken_jobs_module_is_refused_with_its_error(site):
    project = site('INSTALLED_APPS = [*INSTALLED_APPS, "broken"]', "LOGGING_CONFIG = None")
    (project.folder / "broken").mkdir()
    (project.folder / "broken" / "__init__.py").touch()
    (project.folder / "broken" / "jobs.py").write_text("import no_such_module\n")

    done = project.manage("run_jobworker", "--drain")

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("CommandError: The module broken.jobs could not be imported: ")
    assert "no_such_module" in last
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--database", "elsewhere"], ['"elsewhere" is not in DATABASES', "Known are: default"]),
        (["--types", "test.echo,no.such"], ["--types names no.such", "no handler", "test.echo"]),
        (["--types", "a,b"], ["--types names a, b"]),
        (["--queues", ""], ["--queues is empty", "leave it out"]),
        (["--queues", " , "], ["--queues is empty", "leave it out"]),
        (["--types", ""], ["--types is empty", "leave it out"]),
        (["--database", ""], ['database alias "" is not in DATABASES', "Known are: default"]),
    ],
    ids=lambda value: "=".join(value) if value[0].startswith("--") else "",
)
def test_a_wrong_option_is_one_line_and_nothing_is_run(options, words):
    Job.objects.enqueue("test.echo")

    with pytest.raises(CommandError) as refused:
        worker("--drain", *options)

    message = str(refused.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    assert Job.objects.get().attempts == 0
    assert not WorkerProcess.objects.exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--concurrency", "many"),
        ("--concurrency", "2.5"),
        ("--max-jobs", "0"),
        ("--max-jobs", "-1"),
        ("--max-jobs", "²"),
        ("--max-jobs", ""),
        ("--max-jobs", "some"),
    ],
)
def test_a_wrong_number_is_named_with_its_option(option, value):
    with pytest.raises(CommandError) as refused:
        worker("--drain", f"{option}={value}")

    assert f"argument {option}: " in str(refused.value)
    assert repr(value) in str(refused.value)


def test_a_wrong_number_is_named_on_the_last_line_of_the_process(site):
    done = site().manage("run_jobworker", "--max-jobs", "none")

    assert done.returncode == 2
    assert "argument --max-jobs: 'none': expected a whole number" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_a_database_without_our_tables_is_one_line_and_stays_as_it_is(tmp_path):
    """An empty database: of the same server on PostgreSQL, a new file on SQLite."""
    with empty_database(tmp_path) as (url, tables):
        done = Site(tmp_path, url=url).manage("run_jobworker", "--drain")

        assert_one_line(
            done,
            "lacks migrations of django_jobqueue: 0001_initial",
            "Run: python manage.py migrate",
        )
        assert tables() == []


def test_the_remedy_for_another_alias_names_it(tmp_path):
    with empty_database(tmp_path) as (url, _):
        lines = 'DATABASES = {"default": {}, "jobs": DATABASES["default"]}'
        done = Site(tmp_path, lines, url=url).manage("run_jobworker", "--database", "jobs")

        assert_one_line(done, "Run: python manage.py migrate --database jobs")


def test_a_half_migrated_database_is_refused(site):
    applied = MigrationRecorder.Migration.objects.filter(app="django_jobqueue")
    names = list(applied.values_list("name", flat=True))
    applied.filter(name=names[-1]).delete()
    try:
        with pytest.raises(CommandError, match=f"lacks migrations of .*{names[-1]}"):
            worker("--drain")
    finally:
        MigrationRecorder(connection).record_applied("django_jobqueue", names[-1])


def test_a_database_that_is_down_is_one_line_without_the_password(tmp_path):
    if connection.vendor == databases.POSTGRESQL:
        url, place = "postgresql://ann:secret@127.0.0.1:1/site", "postgresql site at 127.0.0.1:1"
    else:
        place = str(tmp_path / "no" / "such" / "folder" / "site.sqlite3")
        url = databases.url_of({"ENGINE": databases.ENGINES[databases.SQLITE], "NAME": place})

    done = Site(tmp_path, url=url).manage("run_jobworker", "--drain")

    line = assert_one_line(done, place, "cannot be reached", "Start it, or correct DATABASES")
    assert "secret" not in line


BLOCKER = """
import sys
for name in ("psycopg", "psycopg2", "psycopg_c", "psycopg_binary"):
    sys.modules[name] = None
"""


POSTGRESQL_URL = "postgresql://ann:secret@127.0.0.1:1/site"


def test_a_missing_driver_is_one_line_with_the_remedy(tmp_path):
    """Of another alias: without the driver of its default database Django itself does not start."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    lines = f'DATABASES["jobs"] = databases.settings_of("{POSTGRESQL_URL}")'
    project = Site(tmp_path, lines, url=f"sqlite:///{tmp_path / 'site.sqlite3'}")

    done = project.manage("run_jobworker", "--drain", "--database", "jobs")

    assert_one_line(done, '"jobs"', "psycopg", 'pip install "django-jobqueue[postgres]"')


def test_a_missing_driver_of_the_default_database_is_named_by_django(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)

    done = Site(tmp_path, url=POSTGRESQL_URL).manage("run_jobworker", "--drain")

    assert done.returncode == 1
    assert "psycopg" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


@contextlib.contextmanager
def empty_database(folder):
    """Yield the URL of a new database, and a function that lists its tables."""
    if connection.vendor == databases.SQLITE:
        import sqlite3

        path = folder / "empty.sqlite3"

        def tables():
            with contextlib.closing(sqlite3.connect(path)) as file:
                return file.execute("SELECT name FROM sqlite_master").fetchall()

        yield f"sqlite:///{path}", tables
        return
    import psycopg

    name = f"{connection.settings_dict['NAME']}_empty"
    url = databases.url_of({**connection.settings_dict, "NAME": name})
    server = databases.url_of({**connection.settings_dict, "NAME": "postgres"})

    def tables():
        with psycopg.connect(url) as new:
            query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            return new.execute(query).fetchall()

    with psycopg.connect(server, autocommit=True) as maintenance:
        maintenance.execute(f'CREATE DATABASE "{name}"')
        try:
            yield url, tables
        finally:
            maintenance.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
