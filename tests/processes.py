"""Worker processes of the tests: start one on the test's database, watch it, end it by its pid."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from django.db import connections, transaction

from tests import databases
from tests.throwaway_postgres import free_port

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 40
GLANCE_SECONDS = 0.02
# Variables of the person who runs the tests must not change what a process does.
FOREIGN = ("JOBS_", "DJANGO_", "DATABASE_URL", "TEST_DATABASE", "PYTHONWARNINGS")


def eventually(condition, what, seconds=SECONDS):
    """Return the first true value of `condition()`; fail with `what` when none comes."""
    pause = threading.Event()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        pause.wait(GLANCE_SECONDS)
    raise AssertionError(f"Within {seconds} s: {what}.")


def counted(pool, outcomes):
    """Wait until the pool has counted these outcomes: it does so just after they are written."""
    eventually(lambda: pool.outcomes == outcomes, f"the pool has not counted {outcomes}")


def answers(port):
    """Whether somebody listens at a port of this machine."""
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Site:
    """The test project as processes see it: its settings, with lines of the test's own."""

    def __init__(self, folder, *lines, url=None):
        self.folder = folder
        self.url = url or databases.url_of(connections["default"].settings_dict)
        self.lines = lines

    @property
    def environ(self):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        kind = databases.SCHEMES[self.url.partition(":")[0]]
        return kept | {
            "DATABASE_URL": self.url,
            "TEST_DATABASE": kind,
            "DJANGO_SETTINGS_MODULE": "site_of_a_test",
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def manage(self, *arguments, program="-m django"):
        """Run a management command to its end."""
        return subprocess.run(
            self.command(arguments, program),
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @contextlib.contextmanager
    def worker(self, *options):
        """Start a worker; whatever the test does, its process is gone afterwards."""
        number = len(list(self.folder.glob("*.out")))
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        command = self.command(["run_jobworker", *options], "-m django")
        with (
            out.open("w") as stdout,
            err.open("w") as stderr,
            subprocess.Popen(
                command, cwd=self.folder, env=self.environ, stdout=stdout, stderr=stderr
            ) as process,
        ):
            try:
                yield Worker(process, out, err)
            finally:
                process.kill()

    @contextlib.contextmanager
    def served(self):
        """Serve the site's pages, static files too, and give their address."""
        port = free_port()
        log = self.folder / "server.err"
        command = self.command(
            ["runserver", "--noreload", "--insecure", f"127.0.0.1:{port}"], "-m django"
        )
        with (
            log.open("w") as stderr,
            subprocess.Popen(
                command, cwd=self.folder, env=self.environ, stdout=stderr, stderr=stderr
            ) as process,
        ):
            try:
                eventually(
                    lambda: answers(port) or process.poll() is not None,
                    f"the server did not start: {log.read_text()}",
                )
                assert process.poll() is None, log.read_text()
                yield f"http://127.0.0.1:{port}"
            finally:
                process.kill()

    def command(self, arguments, program):
        settings = ["from tests.settings import *", *self.lines]
        (self.folder / "site_of_a_test.py").write_text("\n".join(settings) + "\n")
        return [sys.executable, "-W", "error", *program.split(), *arguments]


class Worker:
    """One running worker process and what it has said so far."""

    def __init__(self, process, out, err):
        self.process = process
        self._out = out
        self._err = err

    @property
    def pid(self):
        return self.process.pid

    @property
    def output(self):
        return self._out.read_text()

    @property
    def errors(self):
        return self._err.read_text()

    @property
    def last_line(self):
        return (self.output.splitlines() or [""])[-1]

    def wait_until_started(self):
        eventually(
            lambda: " started: " in self.output or self.process.poll() is not None,
            f"the worker did not start: {self.errors}",
        )
        return self

    def wait_until_it_says(self, words):
        eventually(
            lambda: words in self.errors + self.output,
            f"the worker did not say {words!r}:\n{self.output}{self.errors}",
        )

    def send(self, number):
        self.process.send_signal(number)

    def halt(self):
        """Stop the process, and not in the middle of a write, whose lock SQLite would keep."""
        with transaction.atomic():
            self.send(signal.SIGSTOP)
            eventually(self._is_halted, "the process does not stop")

    def _is_halted(self):
        state = Path(f"/proc/{self.pid}/stat")
        # The state follows the name, which stands in brackets.
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "T"

    def terminate(self):
        self.send(signal.SIGTERM)

    def kill(self):
        self.process.kill()
        self.process.wait(SECONDS)

    def exit_code(self, seconds=SECONDS):
        """Wait for the end of the process."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"The worker still runs after {seconds} s:\n{self.output}{self.errors}"
            ) from None
