"""Is a worker alive? By the age of its file."""

import json
import os
import time
from pathlib import Path

import pytest

from django_jobqueue import healthfile
from django_jobqueue.health import live


def codes(report):
    return [problem.code for problem in report.problems]


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "worker")


def make_old(file, seconds):
    moment = time.time() - seconds
    os.utime(file, (moment, moment))


def test_a_fresh_file_is_a_living_worker(file):
    healthfile.write(file)

    report = live(file, 60)

    assert report.healthy
    assert 0 <= report.measures["age_seconds"] < 5


def test_an_old_file_is_stale_and_names_the_process(file):
    healthfile.write(file)
    make_old(file, 61)

    report = live(file, 60)

    assert codes(report) == ["stale"]
    assert f"is 61 s old, and may be 60 s: the worker with the process id {os.getpid()}" in (
        report.problems[0].text
    )


def test_no_file_is_no_worker(file):
    assert codes(live(file, 60)) == ["no-worker"]


def test_no_path_says_where_to_name_one():
    report = live(None, 60)

    assert codes(report) == ["no-health-file"]
    assert 'JOBQUEUE["HEALTH_FILE"]' in report.problems[0].text


def test_a_file_out_of_reach_is_unreadable(tmp_path):
    (tmp_path / "file").touch()

    assert codes(live(str(tmp_path / "file" / "worker"), 60)) == ["unreadable"]


@pytest.mark.parametrize("content", ["", "[]", '{"pid": "x"}', "\x00"])
def test_somebody_elses_file_counts_by_its_age(file, content):
    Path(file).write_text(content)

    assert healthfile.read(file).pid is None
    assert live(file, 60).healthy


def test_a_file_of_the_future_is_fresh(file):
    healthfile.write(file)
    make_old(file, -100)

    assert healthfile.read(file).age == 0


def test_it_asks_no_database(file):
    """Without a mark no test may use the database: a query would fail."""
    healthfile.write(file)

    assert live(file, 60).healthy


def test_writing_replaces_the_file_at_once_and_leaves_no_draft(tmp_path, file):
    healthfile.write(file)
    before = Path(file).stat().st_ino
    healthfile.write(file)

    assert [found.name for found in tmp_path.iterdir()] == ["worker"]
    assert Path(file).stat().st_ino != before
    said = json.loads((tmp_path / "worker").read_text())
    assert said["pid"] == os.getpid()
    assert abs(said["time"] - time.time()) < 5


def test_a_write_that_fails_leaves_no_draft(tmp_path):
    (tmp_path / "worker").mkdir()

    with pytest.raises(OSError, match="directory"):
        healthfile.write(str(tmp_path / "worker"))

    assert [found.name for found in tmp_path.iterdir()] == ["worker"]


def test_removing_what_is_gone_is_fine(file):
    healthfile.remove(file)
    healthfile.write(file)
    healthfile.remove(file)

    assert healthfile.read(file) is None
