import json
import os
import re
import secrets
import subprocess

import django
import pytest

from tests import databases
from tests.pages import ROOT, table_rows
from tests.processes import Site
from tests.tasks.djangos_own.distribution import Unavailable, fetched

PAGE = ROOT / "docs" / "tasks-conformance.md"
VERSION = "{}.{}".format(*django.VERSION)
SECONDS = 300
SWITCH = "JOBQUEUE_DJANGO_TESTS"
CASE = re.compile(r"^    (?:async )?def test_", re.MULTILINE)


@pytest.fixture
def django_tests():
    """The folder that holds Django's package `tasks`."""
    try:
        return fetched()
    except Unavailable as problem:
        if os.environ.get(SWITCH) == "required" or os.environ.get("CI") == "true":
            raise
        pytest.skip(str(problem))


@pytest.fixture
def server(request, tmp_path):
    """The URL of the server of this run, and the name of a test database there."""
    if databases.chosen_kind(os.environ) == databases.SQLITE:
        return f"sqlite:///{tmp_path / 'site.sqlite3'}", str(tmp_path / "test.sqlite3")
    settings = request.getfixturevalue("database_server")
    return databases.url_of(settings), f"test_jobqueue_django_{secrets.token_hex(4)}"


@pytest.fixture
def outcomes(django_tests, server, tmp_path):
    """From each case to None if it passed, else to what went wrong."""
    url, database = server
    site = Site(
        tmp_path,
        f"DATABASES['default']['TEST'] = {{'NAME': {database!r}}}",
        "JOBQUEUE = {'MAX_ATTEMPTS': 1}",  # Django's backends know no second attempt.
        url=url,
    )
    environ = site.environ
    environ["PYTHONPATH"] = os.pathsep.join([environ["PYTHONPATH"], str(django_tests)])
    report = tmp_path / "report.json"
    done = subprocess.run(
        site.command([str(report)], "-m tests.tasks.djangos_own.run"),
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text())


def listed(version):
    """The cases that the page says cannot pass with a version of Django."""
    rows = table_rows(PAGE, "Case")
    return {case for case, versions, _ in rows if version in versions.split(", ")}


@pytest.mark.skipif(django.VERSION < (6, 0), reason="This Django has no Tasks framework.")
@pytest.mark.timeout(3 * SECONDS)
def test_every_case_of_django_passes_or_is_listed_with_its_reason(django_tests, outcomes):
    failed = {case: why for case, why in outcomes.items() if why is not None}
    written = [path.read_text() for path in django_tests.glob("tasks/test_*.py")]

    assert len(outcomes) == sum(len(CASE.findall(source)) for source in written) > 0
    assert {case: why for case, why in failed.items() if case not in listed(VERSION)} == {}
    assert listed(VERSION) - failed.keys() == set(), "they pass, or are no cases"


def test_each_listed_case_has_a_reason_and_versions_that_ci_tests():
    tested = set(re.findall(r'"3\.\d+ (\d\.\d)"', (ROOT / ".ci" / "run").read_text()))

    for case, versions, reason in table_rows(PAGE, "Case"):
        assert set(versions.split(", ")) <= tested - {"5.2"}, case
        assert reason, case
