"""The wheel, built and used as a stranger would."""

import os
import shutil
import subprocess
import sys
import zipfile
from io import StringIO
from pathlib import Path

import django
import pytest
from django.core.management import call_command

from tests.pages import ROOT, example

PACKAGE = ROOT / "django_jobqueue"

ENQUEUE = """
from reports.jobs import build_report
build_report.enqueue({"year": 2026}, subject=("year", 2026))
"""
REPORT = """
from django_jobqueue.models import Job
for job in Job.objects.all(): print("JOB", job.type, job.status, job.attempts, job.result)
"""


def run(*command, cwd, environ=None):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def stranger_environ():
    """The environment without what points at this checkout or at a database of the tests."""
    ours = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "PYTHONPATH", "TEST_DATABASE", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in ours}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a fresh environment that has the wheel and this run's Django."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    interpreter = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    requirements = [str(wheel), f"django=={django.__version__}"]
    environ = stranger_environ()
    if uv := os.environ.get("UV") or shutil.which("uv"):
        run(uv, "venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent)
        install = [uv, "pip", "install", "--quiet", "--python", interpreter]
    else:
        run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
        install = [interpreter, "-m", "pip", "install", "--quiet"]
    run(*install, *requirements, cwd=folder.parent, environ=environ)
    return interpreter


@pytest.fixture
def site(python, tmp_path):
    """A fresh site with the app of the docs' first job, and a way to run its manage.py."""
    environ = stranger_environ()
    run(python, "-m", "django", "startproject", "mysite", tmp_path, cwd=tmp_path, environ=environ)
    run(python, "manage.py", "startapp", "reports", cwd=tmp_path, environ=environ)
    with (tmp_path / "mysite" / "settings.py").open("a") as settings:
        settings.write("\nINSTALLED_APPS += ['reports']\n")
        settings.write(example("installation.md", "settings.py"))
        settings.write(example("installation.md", "settings.py (SQLite)"))
    (tmp_path / "reports" / "jobs.py").write_text(example("first-job.md", "reports/jobs.py"))

    def manage(*arguments):
        return run(python, "-W", "error", "manage.py", *arguments, cwd=tmp_path, environ=environ)

    return manage


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    packaged = {name for name in names if ".dist-info/" not in name}
    written = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert packaged == written
    assert "django_jobqueue/py.typed" in packaged
    for language in ("de", "es"):
        assert f"django_jobqueue/locale/{language}/LC_MESSAGES/django.mo" in packaged
    assert "django_jobqueue/migrations/0001_initial.py" in packaged
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.timeout(600)
def test_a_fresh_site_installs_the_wheel_and_runs_a_job(site):
    site("check")
    site("migrate", "--verbosity", "0")
    site("shell", "--verbosity", "0", "-c", ENQUEUE)
    site("run_jobworker", "--drain")

    report = site("shell", "--verbosity", "0", "-c", REPORT)

    assert "JOB reports.build succeeded 1 {'title': 'Report of 2026'}" in report


def test_no_migration_is_missing(db):
    output = StringIO()

    call_command("makemigrations", check_changes=True, dry_run=True, stdout=output)

    assert "No changes detected" in output.getvalue()


def test_the_example_project_misses_no_migration(tmp_path):
    environ = stranger_environ() | {"DATABASE_URL": f"sqlite:///{tmp_path / 'site.sqlite3'}"}

    output = run(
        sys.executable,
        ROOT / "manage.py",
        "makemigrations",
        "--check",
        "--dry-run",
        cwd=ROOT,
        environ=environ,
    )

    assert "No changes detected" in output


def test_the_top_level_holds_what_a_reader_expects():
    usual = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    parts = {"django_jobqueue", "docs", "example_project", "manage.py", "tests"}
    visible = {path.name for path in Path(ROOT).iterdir() if not path.name.startswith(".")}

    assert visible - {"build", "dist", "htmlcov", "uv.lock"} == usual | parts | {
        "pyproject.toml",
        "tox.ini",
    }
