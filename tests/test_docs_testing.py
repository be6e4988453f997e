"""The page on testing: its examples are a site with its tests, which is run."""

import inspect
import os
import subprocess
import sys

import pytest

from django_jobqueue.models import Job
from django_jobqueue.testing import assert_enqueued, drain
from django_jobqueue.testing.expectations import TOLERANCE, Expected
from tests import databases
from tests.pages import ROOT, examples, table_rows

PAGE = ROOT / "docs" / "testing.md"

SETTINGS = """
import os
from tests import databases

SECRET_KEY = "only for tests"
USE_TZ = True
INSTALLED_APPS = ["django_jobqueue", "reports"]
DATABASES = {"default": databases.chosen_settings(os.environ)}
DATABASES["default"]["TEST"] = {"NAME": os.environ["SITE_DATABASE"]}
"""


def test_its_examples_run(tmp_path, request):
    files = {e.caption: e.code for e in examples() if e.page == PAGE.name}
    files |= {"site_settings.py": SETTINGS, "reports/__init__.py": ""}
    for name, code in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    environ = os.environ | {
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "SITE_DATABASE": f"test_jobqueue_docs_{os.getpid()}",
    }
    if databases.chosen_kind(os.environ) == databases.SQLITE:
        environ["SITE_DATABASE"] = ":memory:"
    else:
        server = request.getfixturevalue("database_server")
        environ["DATABASE_URL"] = databases.url_of(server)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]

    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )

    tests = sum(code.count("def test_") for code in files.values())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout


@pytest.mark.django_db
def test_its_error_is_what_the_code_says():
    Job.objects.enqueue("reports.build", {"report_id": 7})

    with pytest.raises(AssertionError) as caught:
        assert_enqueued("reports.build", payload={"report_id": 8})

    assert f"```text\nAssertionError: {caught.value}\n```" in PAGE.read_text()


def test_it_lists_every_word_of_an_expectation():
    rows = table_rows(PAGE, "Word")
    words = {word.strip("` ") for row in rows for word in row[0].split(",")}

    assert words == set(Expected.__annotations__)
    assert f"{TOLERANCE.total_seconds():.0f} seconds unless" in PAGE.read_text()


def test_it_lists_every_argument_of_drain_with_its_default():
    written = {row[0]: row[1] for row in table_rows(PAGE, "Argument")}

    taken = inspect.signature(drain).parameters.values()
    assert written == {argument.name: str(argument.default) for argument in taken}
