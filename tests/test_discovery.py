import os
import subprocess
import sys
from textwrap import dedent

import pytest
from django.apps import apps
from django.core import checks
from django.core.signals import request_started
from django.test import override_settings

from django_jobqueue import discovery, registry
from django_jobqueue.conf import CHECK_TAG

HANDLER = """
from django_jobqueue import job_handler

@job_handler("{name}.run")
def run(job):
    pass
"""


@pytest.fixture
def site(tmp_path, monkeypatch, settings):
    """Install apps made of these jobs modules (None: without one), discover, and return nothing."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_handlers", dict(registry.handlers()))
    installed = []

    def install(**modules):
        for name, source in modules.items():
            package = tmp_path / name
            package.mkdir()
            (package / "__init__.py").touch()
            if source is not None:
                (package / "jobs.py").write_text(dedent(source))
        overridden = override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, *modules])
        overridden.enable()
        installed.append((overridden, modules))
        discovery.discover_jobs()

    yield install
    for overridden, modules in reversed(installed):
        overridden.disable()
        for name in [*sys.modules]:
            if name.partition(".")[0] in modules:
                del sys.modules[name]
    discovery.discover_jobs()


def test_the_jobs_of_every_app_are_found(site):
    site(found_one=HANDLER.format(name="found_one"), found_two=HANDLER.format(name="found_two"))

    assert registry.get("found_one.run") is not None
    assert registry.get("found_two.run") is not None
    assert discovery.failures() == ()


def test_an_app_without_jobs_is_no_failure(site):
    site(jobless=None)

    assert discovery.failures() == ()


@pytest.mark.django_db  # The start of a request looks at the connections that are open.
@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import a_module_that_is_missing", "ModuleNotFoundError: No module named"),
        ("from django_jobqueue import a_name", "ImportError: cannot import name 'a_name'"),
        ("def run(:", "SyntaxError: "),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("from . import missing", "ImportError: cannot import name 'missing'"),
    ],
)
def test_a_module_that_fails_becomes_a_check_error_and_the_others_are_found(
    site, source, error, caplog
):
    site(broken_app=source, sound_app=HANDLER.format(name="sound_app"))

    assert registry.get("sound_app.run") is not None
    (failure,) = discovery.failures()
    assert failure.module == "broken_app.jobs"
    assert failure.error.startswith(error)
    assert "Traceback" in failure.traceback
    assert caplog.text == ""
    request_started.send(None)
    request_started.send(None)
    assert caplog.text.count("The module broken_app.jobs could not be imported") == 1
    (message,) = checks.run_checks(tags=[CHECK_TAG], databases=[])
    assert message.id == "django_jobqueue.E003"
    assert message.level == checks.ERROR
    assert message.msg == f"The module broken_app.jobs could not be imported: {failure.error}."
    assert "no worker starts" in message.hint
    assert message.hint.endswith('python manage.py shell -c "import broken_app.jobs"')


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("# A comment.\nx = 1\n{}['missing']", "KeyError: 'missing' (broken_app/jobs.py, line 3)"),
        ("x = 1\ndef run(:", "SyntaxError: invalid syntax (broken_app/jobs.py, line 2)"),
        ("import json\n\njson.loads(7)", "(broken_app/jobs.py, line 3)"),
        (
            "from django_jobqueue import job_handler\n\n@job_handler(7)\ndef run(job): pass",
            "(broken_app/jobs.py, line 3)",
        ),
        ("from . import missing", "(broken_app/jobs.py, line 1)"),
    ],
)
def test_a_failure_names_the_innermost_line_of_the_sites_own_code(site, source, told):
    site(broken_app=source)

    (failure,) = discovery.failures()
    assert failure.error.endswith(told)


def test_a_failure_in_a_module_that_jobs_imports_names_that_one(site, tmp_path):
    (tmp_path / "boom_of_reports.py").write_text("import json\n\n\n{}['missing']\n")

    site(broken_app="import boom_of_reports")

    (failure,) = discovery.failures()
    assert failure.error == "KeyError: 'missing' (boom_of_reports.py, line 4)"


def test_a_mended_module_is_no_failure_any_more(site, tmp_path):
    site(mended_app="1 / 0")
    (tmp_path / "mended_app" / "jobs.py").write_text("MENDED = 'a longer text'\n")

    discovery.discover_jobs()

    assert discovery.failures() == ()


def test_a_handler_may_use_the_models_of_every_app(site):
    site(
        late_app="""
            from django.contrib.auth.models import User
            from django_jobqueue.models import Job
        """
    )

    assert discovery.failures() == ()


def test_the_tests_own_handlers_were_found_at_start():
    assert apps.is_installed("tests.testapp")
    assert registry.get("test.echo") is not None


@pytest.mark.parametrize("source", ["1 / 0", "raise SystemExit(3)"])
def test_a_site_whose_jobs_fail_still_starts(tmp_path, source):
    package = tmp_path / "broken_app"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "jobs.py").write_text(source)
    program = """
        from django.conf import settings
        settings.configure(INSTALLED_APPS=["django_jobqueue", "broken_app"])
        import django
        django.setup()
        from django.core.management import call_command
        call_command("check")
    """

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "SystemCheckError" in done.stderr
    assert "(django_jobqueue.E003)" in done.stderr
    assert done.stderr.count("could not be imported") == 1
    assert "(broken_app/jobs.py, line 1)" in done.stderr
