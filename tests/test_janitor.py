import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings as django_settings
from django.test.utils import override_settings

from django_jobqueue import conf
from django_jobqueue.tempfiles import temporary_file
from django_jobqueue.worker import janitor as module
from django_jobqueue.worker.janitor import OLD_SECONDS, ROUND_SECONDS, Janitor

NOW = 1_800_000_000.0
PREFIX = "jobqueue-shop-"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "tmp"
    place.mkdir()
    return place


@pytest.fixture
def janitor(folder):
    return Janitor(folder=folder, prefix=PREFIX, clock=lambda: NOW)


def aged(path, seconds):
    path.write_text("left behind")
    os.utime(path, (NOW - seconds, NOW - seconds))
    return path


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_old_files_of_this_site_go_and_others_stay(folder, janitor):
    aged(folder / f"{PREFIX}old", OLD_SECONDS + 1)
    aged(folder / f"{PREFIX}young", OLD_SECONDS - 1)
    aged(folder / "jobqueue-other-old", OLD_SECONDS + 1)
    aged(folder / f"x{PREFIX}old", OLD_SECONDS + 1)

    assert janitor() == ROUND_SECONDS
    assert names(folder) == {f"{PREFIX}young", "jobqueue-other-old", f"x{PREFIX}old"}


def test_folders_stay(folder, janitor):
    inside = folder / f"{PREFIX}folder"
    inside.mkdir()
    aged(inside / f"{PREFIX}old", OLD_SECONDS + 1)
    os.utime(inside, (0, 0))

    janitor()

    assert names(inside) == {f"{PREFIX}old"}


def test_of_a_link_the_link_goes_and_not_what_it_points_at(folder, janitor, tmp_path):
    precious = aged(tmp_path / "precious", OLD_SECONDS + 1)
    (tmp_path / "album").mkdir()
    aged(tmp_path / "album" / f"{PREFIX}photo", OLD_SECONDS + 1)
    for name, target in {"file": precious, "folder": tmp_path / "album"}.items():
        link = folder / f"{PREFIX}{name}"
        link.symlink_to(target)
        os.utime(link, (0, 0), follow_symlinks=False)

    janitor()

    assert names(folder) == set()
    assert precious.exists()
    assert names(tmp_path / "album") == {f"{PREFIX}photo"}


def test_a_young_link_to_an_old_file_stays(folder, tmp_path):
    link = folder / f"{PREFIX}link"
    link.symlink_to(aged(tmp_path / "old", OLD_SECONDS + 1))
    os.utime(link, (NOW, NOW), follow_symlinks=False)

    Janitor(folder=folder, prefix=PREFIX, clock=lambda: NOW)()

    assert link.is_symlink()


def test_a_call_ahead_of_time_does_nothing(folder, janitor):
    janitor()
    aged(folder / f"{PREFIX}old", OLD_SECONDS + 1)

    assert 0 < janitor() <= ROUND_SECONDS
    assert names(folder) == {f"{PREFIX}old"}


def test_a_huge_folder_is_gone_through_in_pieces(folder, monkeypatch):
    monkeypatch.setattr(module, "ENTRIES_A_CALL", 2)
    monkeypatch.setattr(module, "NEXT_CALL_SECONDS", 0.0)
    for number in range(5):
        aged(folder / f"{PREFIX}{number}", OLD_SECONDS + 1)
    janitor = Janitor(folder=folder, prefix=PREFIX, clock=lambda: NOW)

    assert [janitor(), len(names(folder))] == [0.0, 3]
    assert [janitor(), len(names(folder))] == [0.0, 1]
    assert [janitor(), len(names(folder))] == [ROUND_SECONDS, 0]


def test_a_file_that_cannot_be_removed_is_logged_and_the_others_go(
    folder, janitor, caplog, monkeypatch
):
    for name in ("foreign", "ours"):
        aged(folder / f"{PREFIX}{name}", OLD_SECONDS + 1)
    unlink = Path.unlink

    def refuse(path):  # Root, who may run the tests, is refused nothing.
        if path.name.endswith("foreign"):
            raise PermissionError(path)
        unlink(path)

    monkeypatch.setattr(Path, "unlink", refuse)

    assert janitor() == ROUND_SECONDS
    assert names(folder) == {f"{PREFIX}foreign"}
    assert "foreign cannot be removed" in caplog.text


def test_a_missing_folder_is_logged(folder, caplog):
    janitor = Janitor(folder=folder / "gone", prefix=PREFIX)

    assert janitor() == ROUND_SECONDS
    assert "cannot be read" in caplog.text


def test_a_janitor_that_is_switched_off_touches_nothing(folder):
    aged(folder / f"{PREFIX}old", OLD_SECONDS + 1)

    assert Janitor(lambda: False, folder=folder, prefix=PREFIX)() == ROUND_SECONDS
    assert names(folder) == {f"{PREFIX}old"}


def test_janitors_of_many_workers_may_run_at_once(folder, caplog):
    for number in range(200):
        aged(folder / f"{PREFIX}{number}", OLD_SECONDS + 1)
    janitors = [Janitor(folder=folder, prefix=PREFIX, clock=lambda: NOW) for _ in range(4)]
    threads = [threading.Thread(target=janitor) for janitor in janitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert names(folder) == set()
    assert caplog.text == ""


def test_a_handler_s_file_carries_the_prefix_and_goes_when_it_is_closed(monkeypatch, folder):
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    with temporary_file("w", suffix=".csv") as file:
        [name] = names(folder)
        file.write("a,b")

    assert name.startswith(conf.temp_prefix())
    assert name.endswith(".csv")
    assert names(folder) == set()


def test_the_system_s_folder_and_the_site_s_prefix_are_the_defaults(monkeypatch, folder):
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    old = folder / f"{conf.temp_prefix()}old"
    old.write_text("")
    os.utime(old, (0, 0))

    Janitor()()

    assert names(folder) == set()


class TestPrefix:
    def test_it_names_the_site(self):
        assert conf.temp_prefix().startswith("jobqueue-tests-")
        assert conf.temp_prefix() == conf.temp_prefix()

    @override_settings(JOBQUEUE={"TEMP_PREFIX": "mine-"})
    def test_the_site_s_own_word_counts(self):
        assert conf.temp_prefix() == "mine-"

    def test_two_sites_with_one_name_have_two_prefixes(self, monkeypatch):
        first = conf.temp_prefix()
        another = {"default": {**django_settings.DATABASES["default"], "NAME": "another"}}

        monkeypatch.setattr(conf, "django_settings", site("config.settings", another))
        second = conf.temp_prefix()
        monkeypatch.setattr(conf, "django_settings", site("config.settings", {}))

        assert len({first, second, conf.temp_prefix()}) == 3

    def test_a_site_without_a_settings_module_has_one_too(self, monkeypatch):
        monkeypatch.setattr(conf, "django_settings", site(None, {}))

        assert conf.temp_prefix().startswith("jobqueue-site-")


def site(module, databases):
    return SimpleNamespace(SETTINGS_MODULE=module, DATABASES=databases)
