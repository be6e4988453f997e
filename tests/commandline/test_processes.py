"""The command as people run it: a process with an exit code."""

import json
import subprocess

import pytest

from django_jobqueue.commandline import WORDS
from django_jobqueue.models import Job
from tests.factories import JobFactory
from tests.pages import ROOT, table_rows
from tests.processes import Site


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


@pytest.mark.parametrize("word", ["status", "list"])
def test_a_database_that_is_not_migrated_is_one_line(tmp_path, word):
    project = Site(tmp_path, url=f"sqlite:///{tmp_path / 'site.sqlite3'}")

    done = project.manage("jobqueue", word)

    assert done.returncode == 1
    assert done.stderr.startswith('CommandError: The database "default" did not do that: no such')
    assert done.stderr.count("\n") == 1


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
