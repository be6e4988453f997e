import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.example_project.conftest import ROOT, SECONDS, Site

# The sample files: seven texts with five steps each, five images with four, one of them broken.
FILES, JOBS, RETRIED = 12, 55, 4

# What the worker grants its jobs at a first signal.
GRACE_SECONDS = 25

STATES = "SELECT status, count(*) FROM django_jobqueue_job GROUP BY status ORDER BY status"


def talkative_demo(site: Site, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        site.command("demo", "--concurrency", "2", "--verbosity", "2"),
        cwd=site.folder,
        env=site.environ | environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(process: subprocess.Popen[str], ends: Callable[[str], bool]) -> str:
    """Return what a process says up to the line that is waited for, or its end."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if ends(line):
            break
    return said


def jobs_run(line: str) -> bool:
    return " running" in line and "0 running" not in line


def test_the_demo_does_its_work_and_a_second_run_adds_no_documents(site: Site) -> None:
    first = site.manage("demo")

    assert first.returncode == 0, first.stdout + first.stderr
    summary = f"{JOBS} of {JOBS} jobs over {FILES} files in "
    assert summary in first.stdout
    assert f"{JOBS - 1} succeeded, 1 failed, {RETRIED} retried." in first.stdout
    assert "not-a-picture.png is not an image" in first.stdout
    assert "succeeded after 2 attempts (ArchiveUnavailable" in " ".join(first.stdout.split())
    assert "runserver" in first.stdout
    assert "log in as admin with the password " in first.stdout
    assert site.rows(STATES) == [("failed", 1), ("succeeded", JOBS - 1)]
    assert site.rows("SELECT count(*) FROM files_result") == [(JOBS - 1,)]
    assert len(list((site.folder / "media" / "thumbnails").iterdir())) == 4

    second = site.manage("demo", "--concurrency", "2")

    assert second.returncode == 0, second.stdout + second.stderr
    assert summary in second.stdout
    assert f"{FILES} known from an earlier run" in second.stdout
    assert "password of the first run" in second.stdout
    assert site.rows(STATES) == [("failed", 2), ("succeeded", 2 * (JOBS - 1))]
    assert site.rows("SELECT count(*) FROM files_document") == [(FILES,)]
    assert site.rows("SELECT count(*) FROM auth_user") == [(1,)]
    assert len(list((site.folder / "media" / "thumbnails").iterdir())) == 4


def test_the_demo_works_on_postgresql(postgresql_site: Site) -> None:
    done = postgresql_site.manage("demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{JOBS} of {JOBS} jobs over {FILES} files in " in done.stdout
    assert f"{JOBS - 1} succeeded, 1 failed, {RETRIED} retried." in done.stdout


def test_the_password_that_the_demo_prints_opens_the_admin(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "note [bold].txt").write_text("A note.")
    done = site.manage("demo", str(folder))
    (password,) = (
        line.split("with the password ")[1].split()[0]
        for line in done.stdout.splitlines()
        if "with the password " in line
    )

    tried = site.manage(
        "shell",
        "-c",
        "from django.contrib.auth import authenticate;"
        f"print('may log in:', authenticate(username='admin', password={password!r}).is_superuser)",
    )

    assert "may log in: True" in tried.stdout, tried.stderr
    assert "note [bold].txt" in done.stdout


def test_the_demo_takes_no_more_files_than_the_limit(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text("Some words.")

    done = site.manage("demo", str(folder), "--limit", "2")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 of 10 jobs over 2 files in " in done.stdout
    assert "3 left out because of --limit" in done.stdout


def test_jobs_that_the_worker_leaves_are_an_error(site: Site) -> None:
    assert site.manage("migrate", "--verbosity", "0").returncode == 0
    paused = site.manage(
        "shell",
        "-c",
        "from django_jobqueue.models import Job; Job.objects.pause('queue', 'default')",
    )
    assert paused.returncode == 0, paused.stderr

    done = site.manage("demo")

    assert done.returncode == 1
    assert f"0 of {JOBS} jobs over {FILES} files in " in done.stdout
    assert f"{JOBS} jobs are left" in done.stderr


def test_what_a_failing_worker_says_is_shown(site: Site) -> None:
    (site.folder / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'run_jobworker' in sys.orig_argv:\n"
        "    os.write(2, b'Error: no worker today.\\n')\n"
        "    os._exit(1)\n"
    )

    done = site.manage("demo", PYTHONPATH=str(site.folder))

    assert done.returncode == 1
    assert "The worker ended with exit code 1" in done.stderr
    assert "Error: no worker today." in done.stderr
    assert f"{JOBS} left in the queue" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_worker_and_loses_nothing(site: Site, number: int) -> None:
    with talkative_demo(site, SCAN_MS="1500") as process:
        output = read_until(process, jobs_run)
        process.send_signal(number)
        output += process.communicate(timeout=SECONDS)[0]

    assert process.returncode == 130, output
    assert "nothing is lost" in output
    assert "left in the queue" in output
    assert dict(site.rows(STATES)).get("running", 0) == 0
    assert sum(dict(site.rows(STATES)).values()) == JOBS


def test_a_second_interrupt_stops_it_at_once_and_loses_nothing(site: Site) -> None:
    with talkative_demo(site, SCAN_MS="300000") as process:
        output = read_until(process, jobs_run)
        process.send_signal(signal.SIGINT)
        output += read_until(process, lambda line: "Ctrl-C again" in line)
        process.send_signal(signal.SIGINT)
        try:
            output += process.communicate(timeout=GRACE_SECONDS - 5)[0]
        finally:
            process.kill()

    assert process.returncode == 130, output
    assert dict(site.rows(STATES)).get("running", 0) == 0
    assert sum(dict(site.rows(STATES)).values()) == JOBS


def test_tracing_prints_the_spans_of_the_site(site: Site) -> None:
    site.manage("migrate", "--verbosity", "0")

    done = site.manage(
        "shell",
        "-c",
        "from django.test import Client; print(Client(headers={'host': 'localhost'}).get('/'))",
        OTEL_ENABLED="true",
    )

    assert done.returncode == 0, done.stderr
    assert '"name": "GET "' in done.stderr or '"http.method": "GET"' in done.stderr
    assert "<HttpResponse status_code=200" in done.stdout


def test_nothing_is_written_beside_the_database_and_the_media(site: Site) -> None:
    project = ROOT / "example_project"
    before = sorted(project.iterdir())

    site.manage("demo")

    assert sorted(project.iterdir()) == before
    names = {path.name for path in site.folder.iterdir()} - {"site.sqlite3-wal", "site.sqlite3-shm"}
    assert names == {"site.sqlite3", "media"}
