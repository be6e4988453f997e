import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
pytest_plugins = ["django_jobqueue.testing.pytest_plugin"]
"""
TESTS = """
from datetime import timedelta

import pytest

from django_jobqueue.models import Job
from django_jobqueue.testing import assert_enqueued, drain


@pytest.mark.django_db
def test_the_clock_moves_the_queue(jobqueue_clock):
    Job.objects.enqueue("test.echo", {"n": 1}, delay=timedelta(hours=3))
    assert len(drain()) == 0
    jobqueue_clock.advance(hours=3)
    assert drain().runs[0].result == {"n": 1}


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction(jobqueue_clock):
    assert Job.objects.enqueue("test.echo").created_at == jobqueue_clock.now


@pytest.mark.django_db
def test_a_failure_shows_the_line_of_the_test():
    assert_enqueued("test.echo")
"""
SETTINGS = """
SECRET_KEY = "only for tests"
USE_TZ = True
INSTALLED_APPS = ["django_jobqueue", "tests.testapp"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_site.py").write_text(TESTS)
    (tmp_path / "site_settings.py").write_text(SETTINGS)
    return tmp_path


def run(site, *arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command,
        cwd=site,
        env=os.environ
        | {"PYTHONPATH": f"{ROOT}:{site}", "DJANGO_SETTINGS_MODULE": "site_settings"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_site_enables_it_in_its_conftest(site):
    done = run(site)

    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert "test_site.py:29: AssertionError" in done.stdout or (
        "test_site.py" in done.stdout and "enqueued.py" not in done.stdout
    )


def test_it_can_be_named_on_the_command_line_before_django_is_set_up(site):
    (site / "conftest.py").unlink()

    done = run(site, "-p", "django_jobqueue.testing.pytest_plugin", "-k", "clock")

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_package_needs_no_pytest():
    program = """
import sys
sys.modules["pytest"] = None
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django_jobqueue"], USE_TZ=True)
django.setup()
from django_jobqueue.testing import *
import django_jobqueue.testing as testing
assert all(name in globals() for name in testing.__all__)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_a_name_that_is_not_there_is_an_attribute_error():
    from django_jobqueue import testing

    with pytest.raises(AttributeError, match="has no attribute 'a_name'"):
        testing.a_name  # noqa: B018 (reading is the act)
