"""Output that takes no more, and questions that stay out of it."""

import json
import os
import pty
import shlex
import subprocess

import pytest

from django_jobqueue.models import Job
from tests.factories import JobFactory

FULL = "> /dev/full"
CLOSED = ">&-"


@pytest.fixture
def shell(site):
    """Run a management command with the redirections of a shell; returns what became of it."""
    project = site()

    def run(words, redirections="", text="", before=""):
        command = project.command(shlex.split(words), "-m django")
        return subprocess.run(
            ["/bin/sh", "-c", f"{before}{shlex.join(command)} {redirections}"],
            cwd=project.folder,
            env=project.environ,
            input=text,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )

    return run


@pytest.mark.parametrize("words", ["jobqueue list", "jobqueue status --format json"])
def test_a_full_disk_is_one_line_and_a_failure(shell, words):
    JobFactory()

    done = shell(words, FULL)

    text = "CommandError: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, text)


def test_a_full_disk_is_told_for_a_probe_too(shell):
    done = shell("jobqueue_health --ready", FULL)

    assert done.returncode == 1
    assert "The output cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_much_output_on_a_full_disk_is_one_line_too(shell, form):
    Job.objects.bulk_create(JobFactory.build() for _ in range(500))

    done = shell(f"jobqueue list --limit 500 --format {form}", FULL)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("jobqueue list", 0),
        ("jobqueue list --format json", 0),
        ("jobqueue show ffff", 1),
        ("jobqueue list --limit x", 2),
        ("jobqueue_health --ready", 0),
        ("run_jobworker --drain", 0),
    ],
)
def test_a_closed_stdout_is_no_failure_of_its_own(shell, words, code):
    done = shell(words, CLOSED)

    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("redirections", ["2>&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_closed_streams_change_no_exit_code(shell, redirections):
    JobFactory()

    assert shell("jobqueue list", redirections).returncode == 0
    assert shell("jobqueue show ffff", redirections).returncode == 1
    assert shell("jobqueue cancel --all-matching", redirections).returncode == 1
    assert Job.objects.pending().count() == 1


def test_a_refusal_stays_one_when_the_reader_has_left(shell):
    job = JobFactory(succeeded=True)

    done = shell(f"jobqueue cancel {job.pk}", "; echo ended with $? >&2; } | true", before="{ ")

    assert done.stderr.splitlines() == [
        "CommandError: No job was cancelled: only pending jobs are.",
        "ended with 1",
    ]


def test_a_worker_runs_jobs_though_nobody_can_read_it(shell):
    for redirections in (FULL, CLOSED, f"{FULL} 2>&1"):
        job = JobFactory(type="test.echo", payload={})
        done = shell("run_jobworker --drain", redirections)
        assert done.returncode == 0, done.stderr
        job.refresh_from_db()
        assert job.status == "succeeded"


def test_worker_processes_run_jobs_though_nobody_can_read_them(shell):
    for redirections in (FULL, CLOSED):
        job = JobFactory(type="test.echo", payload={})
        done = shell("run_jobworker --drain --processes 2", redirections)
        assert done.returncode == 0, done.stderr
        job.refresh_from_db()
        assert job.status == "succeeded"


def test_bytes_that_are_no_text_are_a_usage_error(shell):
    done = shell("jobqueue list", "--type $(printf '\\377\\376')")

    assert done.returncode == 2
    assert r"argument --type: '\udcff\udcfe': expected text in UTF-8" in done.stderr


@pytest.mark.parametrize("moment", ["0001-01-01T00:00+14:00", "9999-12-31T23:59-10:00"])
@pytest.mark.parametrize("word", ["list", "cancel --all-matching --yes"])
def test_a_moment_that_no_column_holds_is_a_usage_error(shell, word, moment):
    done = shell(f"jobqueue {word} --since={moment}")

    assert done.returncode == 2
    assert "argument --since" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("reply", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_a_question_stays_out_of_the_output(shell, reply, code):
    JobFactory()

    done = shell("jobqueue cancel --all-matching --format json", text=reply)

    assert done.returncode == code
    assert done.stderr.startswith("1 job will be cancelled. Go on? [y/N] ")
    if code == 0:
        assert json.loads(done.stdout)["done"] == 1
    else:
        assert done.stdout == ""


def test_the_question_of_a_purge_stays_out_of_it_too(shell):
    JobFactory(succeeded=True)

    done = shell("jobqueue purge --older-than 0s --format json", text="y\n")

    assert json.loads(done.stdout) == {"deleted": 1}


def test_a_person_at_a_terminal_sees_the_question_while_the_output_goes_to_a_file(site, tmp_path):
    JobFactory()
    project = site()
    command = project.command(
        ["jobqueue", "cancel", "--all-matching", "--format", "json"], "-m django"
    )
    ours, theirs = pty.openpty()
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=project.folder,
            env=project.environ,
            stdin=theirs,
            stdout=out,
            stderr=theirs,
        )
    os.close(theirs)
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(ours, 1000)
    os.write(ours, b"y\n")
    code = process.wait(40)
    os.close(ours)

    assert code == 0
    assert json.loads((tmp_path / "out").read_text())["done"] == 1
    assert b"\x1b" not in seen


@pytest.mark.django_db
def test_bytes_that_are_no_text_are_no_yes(jobqueue_command):
    job = JobFactory()

    answer = jobqueue_command("cancel", "--all-matching", reply=UnicodeDecodeError)

    assert answer.refusal == "Nothing was changed."
    job.refresh_from_db()
    assert job.status == "pending"
