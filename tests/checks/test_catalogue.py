"""The list of ids: what the pages say, what the code gives, what a site may silence."""

import re

import pytest
from django.core import checks
from django.test import override_settings

from django_jobqueue.checks.catalogue import CATALOGUE, KINDS, message
from tests.checks.looking import checked, ids_in
from tests.pages import ROOT, table_rows
from tests.processes import Site

LEVELS = {"E": "error", "W": "warning", "I": "info"}


def test_the_page_lists_every_check_with_its_level_and_mistake():
    rows = table_rows(ROOT / "docs" / "checks.md", "Id")

    assert [tuple(row[:3]) for row in rows] == [
        (f"django_jobqueue.{number}", LEVELS[number[0]], mistake.strip(" `"))
        for number, mistake in CATALOGUE.items()
    ]
    assert all(row[3] for row in rows)


def test_the_code_gives_every_id_of_the_catalogue_and_no_other():
    folder = ROOT / "django_jobqueue" / "checks"
    code = "".join(file.read_text() for file in folder.glob("*.py") if file.name != "catalogue.py")

    assert set(re.findall(r'"([EWI]\d{3})"', code)) == set(CATALOGUE)


def test_ids_that_were_given_keep_their_mistake():
    """From a release on they stay; these are the first."""
    assert "unknown" in CATALOGUE["E001"]
    assert "cannot be used" in CATALOGUE["E002"]
    assert "cannot be imported" in CATALOGUE["E003"]
    assert [
        word in CATALOGUE[f"W00{number}"]
        for number, word in enumerate(
            ("WORKER_MODE", "WORKER_CONCURRENCY", "SYSTEM_MODE_EXTRA_TYPES", "LEASE_CAP"), start=1
        )
    ] == [True] * 4


@pytest.mark.parametrize("number", ["E001", "W001", "I001"])
def test_a_letter_is_a_level(number):
    made = message(number, "What it is.", "What to do.")

    assert type(made) is KINDS[number[0]]
    assert made.id == f"django_jobqueue.{number}"
    assert isinstance(made, checks.CheckMessage)


def test_an_id_that_nobody_listed_is_refused():
    with pytest.raises(LookupError, match="E999 is not in the catalogue"):
        message("E999", "What it is.", "What to do.")


def test_the_site_of_the_tests_has_no_message():
    assert ids_in(checked()) == []


def test_the_example_project_has_no_message(tmp_path):
    site = Site(tmp_path, url=f"sqlite:///{tmp_path / 'site.sqlite3'}")

    done = site.manage("check", "--database", "default", "--settings", "example_project.settings")

    assert done.returncode == 0, done.stderr
    assert "System check identified no issues" in done.stdout


@override_settings(
    JOBQUEUE={"WORKER_MODE": "sytem", "LEASE_CAP": 1},
    SILENCED_SYSTEM_CHECKS=["django_jobqueue.W001"],
)
def test_a_site_may_silence_one_id():
    assert ids_in(checked()) == ["W004"]
