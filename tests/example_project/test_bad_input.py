import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.example_project.conftest import Site


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "nonsense"),
        ("JOBS_POLL_MS", "soon"),
        ("DEBUG", "perhaps"),
        ("SCAN_MS", "0"),
    ],
)
@pytest.mark.parametrize("command", ["demo", "migrate", "run_jobworker"])
def test_a_wrong_variable_ends_a_command_with_one_line(
    site: Site, command: str, name: str, value: str
) -> None:
    done = site.manage(command, **{name: value})

    assert done.returncode == 1
    assert done.stderr.startswith(f'Error: {name} is "{value}"; expected ')
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_without_debug_a_secret_key_is_asked_for(site: Site) -> None:
    done = site.manage("check", DEBUG="false", SECRET_KEY="")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "SECRET_KEY is not set" in done.stderr


def test_tracing_without_its_extra_is_one_line(site: Site) -> None:
    # A module that cannot be imported stands in for one that is not there.
    (site.folder / "sitecustomize.py").write_text(
        "import sys\nsys.modules['opentelemetry.instrumentation.django'] = None\n"
    )

    done = site.manage("check", OTEL_ENABLED="true", PYTHONPATH=str(site.folder))

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert 'OTEL_ENABLED is "true", and OpenTelemetry is not installed' in done.stderr


def folder_that_is_missing(base: Path) -> Path:
    return base / "nowhere"


def folder_that_is_a_file(base: Path) -> Path:
    path = base / "file.txt"
    path.write_text("text")
    return path


def folder_that_is_empty(base: Path) -> Path:
    path = base / "empty"
    path.mkdir()
    return path


def folder_with_nothing_to_read(base: Path) -> Path:
    path = base / "hollow"
    path.mkdir()
    (path / "empty.txt").touch()
    (path / ".hidden").write_text("hidden")
    (path / "inner").mkdir()
    return path


def folder_that_is_closed(base: Path) -> Path:
    path = base / "closed"
    path.mkdir()
    (path / "file.txt").write_text("text")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    return path


@pytest.mark.parametrize(
    "make",
    [
        folder_that_is_missing,
        folder_that_is_a_file,
        folder_that_is_empty,
        folder_with_nothing_to_read,
        folder_that_is_closed,
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line_and_nothing_is_written(
    site: Site, make: Callable[[Path], Path]
) -> None:
    folder = make(site.folder)

    done = site.manage("demo", str(folder))

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f'The folder "{folder}"' in done.stderr
    assert not site.database.exists()


@pytest.mark.parametrize("option", ["--concurrency", "--limit"])
def test_a_number_below_one_is_refused(site: Site, option: str) -> None:
    done = site.manage("demo", option, "0")

    assert done.returncode == 1
    assert f"{option} is 0" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not site.database.exists()


def test_a_database_that_is_away_is_one_line(site: Site) -> None:
    # Nothing listens on port 1.
    done = site.manage("demo", DATABASE_URL="postgres://ann:secret@127.0.0.1:1/files")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "cannot be used" in done.stderr
    assert "secret" not in done.stderr
