"""The command as people run it: a process with an exit code."""

import json
import subprocess

import pytest
from django.db import connection

from django_jobqueue.commandline import WORDS
from django_jobqueue.management.commands.jobqueue import Command
from django_jobqueue.models import Job
from tests import databases
from tests.factories import JobFactory
from tests.pages import ROOT, table_rows
from tests.processes import Site
from tests.throwaway_postgres import free_port


def test_every_word_runs_and_ends_with_its_code(site):
    failed, pending = JobFactory(failed=True), JobFactory()
    project = site()

    def code_of(*words):
        done = project.manage("jobqueue", *words)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    assert code_of("status") == 0
    assert code_of("list", "--format", "json") == 0
    assert code_of("show", str(failed.pk)) == 0
    assert code_of("retry", str(failed.pk)) == 0
    assert code_of("retry", str(failed.pk)) == 1
    assert code_of("cancel", str(pending.pk)) == 0
    assert code_of("pause", "queue", "imports") == 0
    assert code_of("resume", "queue", "imports") == 0
    assert code_of("resume", "queue", "imports") == 1
    assert code_of("purge", "--older-than", "30d") == 0
    assert code_of("reap", "--all-matching", "--yes") == 1
    assert code_of("reap") == 2
    assert code_of("list", "--limit", "none") == 2
    assert code_of("explode") == 2
    assert code_of() == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--settings", "site_of_a_test"],
        ["--pythonpath", "."],
        ["--traceback"],
        ["-v", "2"],
        ["--no-color"],
        ["--force-color"],
    ],
)
def test_options_of_django_stand_before_the_word_and_after_it(site, options):
    project = site()

    for words in (["status", *options], [*options, "status"]):
        done = project.manage("jobqueue", *words)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_an_option_before_the_word_is_not_undone_by_the_word():
    parser = Command().create_parser("manage.py", "jobqueue")

    assert parser.parse_args(["-v", "3", "status"]).verbosity == 3
    assert parser.parse_args(["status", "-v", "3"]).verbosity == 3
    assert parser.parse_args(["status"]).verbosity == 1
    assert parser.parse_args(["--traceback", "status", "--no-color"]).traceback is True


def test_its_json_is_one_document(site):
    JobFactory(type="test.日本")

    done = site().manage("jobqueue", "list", "--format", "json")

    assert json.loads(done.stdout)["jobs"][0]["type"] == "test.日本"
    assert done.stderr == ""


def test_a_question_without_a_person_is_refused(site):
    JobFactory()

    done = site().manage("jobqueue", "cancel", "--all-matching")

    assert done.returncode == 1
    assert done.stderr.endswith("CommandError: Nobody is there to be asked. Give --yes to go on.\n")
    assert Job.objects.pending().count() == 1


def test_a_reader_that_leaves_early_is_no_failure(site):
    Job.objects.bulk_create(JobFactory.build() for _ in range(3000))
    project = site()
    command = project.command(["jobqueue", "list", "--limit", "3000"], "-m django")
    with subprocess.Popen(
        command,
        cwd=project.folder,
        env=project.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        code = process.wait(40)

    assert (code, errors) == (0, "")


@pytest.fixture
def unmigrated(tmp_path, transactional_db):
    """A site whose database has no tables."""
    url = f"sqlite:///{tmp_path / 'site.sqlite3'}"
    if connection.vendor == "postgresql":
        url = databases.url_of(connection.settings_dict | {"NAME": "postgres"})
    return Site(tmp_path, url=url)


@pytest.mark.parametrize("word", ["status", "list", "show 0193a1", "pause queue imports"])
def test_a_database_that_is_not_migrated_is_one_line(unmigrated, word):
    done = unmigrated.manage("jobqueue", *word.split())

    assert done.returncode == 1
    assert done.stderr.startswith(f'CommandError: The database "default" ({connection.vendor} ')
    assert done.stderr.endswith(" Run: python manage.py migrate\n")
    assert done.stderr.count("\n") == 1


def test_a_probe_of_a_database_that_is_not_migrated_says_so(unmigrated):
    done = unmigrated.manage("jobqueue_health", "--queue")

    assert done.returncode == 1
    assert done.stdout.startswith('queue: The database "default" lacks migrations: 0001_initial')
    assert done.stdout.endswith(" Run: python manage.py migrate\n")


def test_a_database_that_does_not_answer_is_one_line_with_the_remedy(tmp_path):
    url = f"postgres://postgres@127.0.0.1:{free_port()}/nothing"
    project = Site(tmp_path, url=url)

    done = project.manage("jobqueue", "status")
    probe = project.manage("jobqueue_health", "--queue")

    assert (done.returncode, probe.returncode) == (1, 1)
    assert " cannot be reached: " in done.stderr
    assert done.stderr.endswith('Start it, or correct DATABASES["default"].\n')
    assert done.stderr.count("\n") == 1
    assert " does not answer: " in probe.stdout
    assert probe.stdout.endswith('Start it, or correct DATABASES["default"].\n')


def test_an_unknown_alias_is_named_with_the_known_ones(site):
    done = site().manage("jobqueue", "status", "--database", "nowhere")

    assert done.returncode == 1
    assert '"nowhere" is not in DATABASES. Known are: default.' in done.stderr


def test_the_page_lists_every_word():
    rows = table_rows(ROOT / "docs" / "commandline.md", "Word")

    assert [row[0].split()[0] for row in rows] == [word.name for word in WORDS]


def options_of(word):
    import argparse

    parser = argparse.ArgumentParser()
    word.declare(parser)
    return {
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }


def test_the_page_lists_every_option():
    rows = table_rows(ROOT / "docs" / "commandline.md", "Option")
    written = {part.strip("` ").split()[0] for row in rows for part in row[0].split(", ")}

    taken = set().union(*(options_of(word) for word in WORDS)) | {"--database", "--format"}
    assert written == taken
