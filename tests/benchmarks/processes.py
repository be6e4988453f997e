"""Processes of the benchmark: started with an environment of their own, ended by their own pid."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = "tests.benchmarks.site_settings"
START_SECONDS = 60
STOP_SECONDS = 40
KILL_SECONDS = 10
GLANCE_SECONDS = 0.05
# Variables of the person who runs the benchmark must not change what a system does.
FOREIGN = ("JOBS_", "DJANGO_", "DATABASE_URL", "TEST_DATABASE", "PYTHON", "CELERY", "PG", "BENCH_")


class Failed(Exception):
    """A process did not do what it was started for; the text says what it printed."""


class Process:
    """A running process; `log` is what it printed so far, stdout and stderr together."""

    def __init__(self, popen, log_path):
        self.popen = popen
        self._log_path = log_path

    @property
    def pid(self):
        return self.popen.pid

    @property
    def log(self):
        return self._log_path.read_text(errors="replace")

    @property
    def is_running(self):
        return self.popen.poll() is None

    def check(self):
        """Raise Failed if the process has ended."""
        if not self.is_running:
            raise Failed(f"exit code {self.popen.returncode}: {self.log[-2000:]}")

    def wait_until_it_says(self, words, times=1, seconds=START_SECONDS):
        self.wait_until(lambda: self.log.count(words) >= times, f"{words!r}", seconds)

    def wait_until(self, condition, what, seconds=START_SECONDS):
        """Wait until `condition()` is true; Failed if the process ends or time runs out."""
        end = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise Failed(f"no {what} within {seconds} s: {self.log[-2000:]}")
            pause(GLANCE_SECONDS)

    def stop(self):
        """End the process: SIGTERM, and SIGKILL if it takes too long."""
        if self.is_running:
            self.popen.send_signal(signal.SIGTERM)
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(KILL_SECONDS)
        # Whatever it started and did not end itself.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def pause(seconds):
    threading.Event().wait(seconds)


def environ(**variables):
    """Return a clean environment in which this checkout can be imported."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | variables


def site_environ(url, settings=None, *, debug=False, module=SITE):
    """Return the environment of a process of the benchmark's Django site."""
    return environ(
        DATABASE_URL=url,
        DJANGO_SETTINGS_MODULE=module,
        BENCH_JOBQUEUE=json.dumps(settings or {}),
        BENCH_DEBUG="1" if debug else "0",
    )


@contextlib.contextmanager
def start(command, environ, folder):
    """Start a process and yield it; whatever happens, it is gone afterwards."""
    log_path = folder / "log"
    with (
        log_path.open("w") as log,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as popen,
    ):
        process = Process(popen, log_path)
        try:
            yield process
        finally:
            process.stop()


def finish(command, environ, seconds=120):
    """Run a process to its end and return what it printed; Failed if it failed."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise Failed(f"exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
