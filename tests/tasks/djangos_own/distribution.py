"""Django's tests of its Tasks framework, from the source distribution of the installed version.

Nothing of it is in the repository: it is downloaded once a version, into `.cache`.
"""

import contextlib
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import django

from tests.pages import ROOT

CACHE = ROOT / ".cache" / "django-tests"
PLACE = ("tests", "tasks")
"""Where the tests are in the distribution."""

SECONDS = 300


class Unavailable(Exception):
    """The distribution cannot be downloaded here; the message holds pip's own words."""


def fetched() -> Path:
    """Return the folder that holds Django's package `tasks`; raise Unavailable."""
    version = django.get_version()
    place = CACHE / version
    CACHE.mkdir(parents=True, exist_ok=True)
    with alone(CACHE / "lock"):
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as name:
                folder = Path(name)
                extract(download(version, folder), folder / "found")
                # Only what is whole has that name.
                (folder / "found").rename(place)
    return place


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Keep other processes of the tests out."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download(version: str, folder: Path) -> Path:
    """Download the distribution of a version of Django, and return its file."""
    options = (
        "--quiet",
        "--retries",
        "1",
        "--no-deps",
        "--no-binary",
        "django",
        "--dest",
        str(folder),
    )
    try:
        done = subprocess.run(
            [*pip(), "download", *options, f"django=={version}"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Django {version} is not downloaded within {SECONDS} s.") from None
    if done.returncode:
        raise Unavailable(f"Django {version} cannot be downloaded: {done.stderr.strip()}")
    (archive,) = folder.glob("*.tar.gz")
    return archive


def pip() -> list[str]:
    """Return the command of a pip for this interpreter; uv makes environments without one."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    uv = os.environ.get("UV") or shutil.which("uv")
    if not uv:
        raise Unavailable("There is neither pip nor uv to download Django's tests with.")
    run = [uv, "run", "--quiet", "--no-project", "--python", sys.executable, "--with", "pip"]
    return [*run, "python", "-m", "pip"]


def extract(archive: Path, folder: Path) -> None:
    """Take the tests of tasks out of a distribution, and nothing else."""
    with tarfile.open(archive) as distribution:
        for member in distribution.getmembers():
            _, *path = Path(member.name).parts
            if member.isfile() and tuple(path[:-1]) == PLACE:
                member.name = "/".join(path[1:])
                distribution.extract(member, folder, filter="data")
