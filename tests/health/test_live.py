"""Is a worker alive? By the age of its file."""

import json
import os
import re
import socket
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


@pytest.mark.parametrize("content", ["", "[]", '{"pid": "x"}', '{"pid": true}', "\x00", "[" * 4000])
def test_somebody_elses_file_counts_by_its_age(file, content):
    Path(file).write_text(content)

    assert healthfile.read(file).pid is None
    assert live(file, 60).healthy


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
    healthfile.remove(file, os.getpid())
    healthfile.write(file)
    healthfile.remove(file, os.getpid())

    assert healthfile.read(file) is None


@pytest.mark.parametrize("age", [-3600, -11])
def test_a_file_of_the_future_is_stale(file, age):
    healthfile.write(file)
    make_old(file, age)

    report = live(file, 60)

    assert codes(report) == ["stale"]
    assert f"is dated {-age} s in the future" in report.problems[0].text
    assert report.measures["age_seconds"] == pytest.approx(age, abs=2)


def test_a_clock_that_is_a_little_ahead_harms_nothing(file):
    healthfile.write(file)
    make_old(file, -8)

    assert live(file, 60).healthy


def fifo(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def empty_device(path):
    path.symlink_to("/dev/null")


def folder(path):
    path.mkdir()


def listening(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("make", [fifo, endless, empty_device, folder, listening])
def test_what_is_no_file_is_unreadable_at_once_and_never_replaced(file, make):
    make(Path(file))
    began = time.monotonic()

    report = live(file, 60)

    assert codes(report) == ["unreadable"]
    assert time.monotonic() - began < 2
    assert healthfile.problem_of(file) is not None


@pytest.mark.parametrize("content", ["[" * 100_000, " " * 5000])
def test_what_is_too_long_is_unreadable(file, content):
    Path(file).write_text(content)

    report = live(file, 60)

    assert codes(report) == ["unreadable"]
    assert "too long for a health file" in report.problems[0].text


def test_a_path_that_no_system_knows_is_unreadable():
    assert codes(live("a\0b", 60)) == ["unreadable"]
    with pytest.raises(OSError, match="null"):
        healthfile.write("a\0b")
    healthfile.remove("a\0b", os.getpid())


def test_a_link_to_a_health_file_counts(tmp_path, file):
    """Volumes of Kubernetes are made of links."""
    healthfile.write(file)
    (tmp_path / "link").symlink_to(file)

    assert live(str(tmp_path / "link"), 60).healthy


def test_a_write_follows_no_link_and_overwrites_nobodys_file(tmp_path, file, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(healthfile.secrets, "token_hex", lambda size: "guessed")
    draft = Path(f"{file}.guessed.tmp")
    draft.symlink_to(victim)

    with pytest.raises(FileExistsError):
        healthfile.write(file)

    assert draft.is_symlink()
    assert victim.read_text() == "precious"
    assert not Path(file).exists()


def test_a_link_in_the_files_place_is_replaced_and_its_target_kept(tmp_path, file):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    Path(file).symlink_to(victim)

    healthfile.write(file)

    assert not Path(file).is_symlink()
    assert victim.read_text() == "precious"


def test_the_name_of_a_draft_cannot_be_foreseen(file, monkeypatch):
    names = []
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, target: (names.append(self.name), replace(self, target))[1]
    )

    for _ in range(5):
        healthfile.write(file)

    assert len(set(names)) == 5
    assert all(re.fullmatch(r"worker\.[0-9a-f]{16}\.tmp", name) for name in names)


def test_other_users_may_read_the_file_as_the_umask_says(file):
    before = os.umask(0o022)
    try:
        healthfile.write(file)
    finally:
        os.umask(before)

    assert Path(file).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("content", ['{"pid": 1}', '{"pid": true}', "", "precious"])
def test_only_the_file_of_the_process_is_removed(file, content):
    Path(file).write_text(content)

    healthfile.remove(file, os.getpid())

    assert Path(file).read_text() == content
