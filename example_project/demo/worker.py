"""The real worker, as a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from django.conf import settings

from .interrupts import Interrupts

KEPT_LINES = 400
# A little more than the worker grants its jobs at a stop, and needs after that.
STOP_SECONDS = 35.0
KILL_SECONDS = 5.0
# How soon an interrupt is noticed.
LOOK_SECONDS = 0.2

# Retries come soon, so that the demonstration is short. What the environment says wins.
QUICK = {"JOBS_RETRY_BASE_MS": "1000", "JOBS_RETRY_MAX_MS": "4000", "JOBS_POLL_MS": "250"}


class WorkerProcess:
    """`manage.py run_jobworker --drain`, and what it says."""

    def __init__(self, concurrency: int, echo: Callable[[str], None] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._echo = echo
        manage = settings.BASE_DIR / "manage.py"
        command = [sys.executable, str(manage), "run_jobworker", "--drain"]
        command += ["--concurrency", str(concurrency)]
        self._process = subprocess.Popen(
            command,
            env=QUICK | os.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A session of its own, so that Ctrl-C reaches this process, which passes it on.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="worker-output", daemon=True)
        self._reader.start()

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, so long at most; return the exit code, or None while it runs."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(KILL_SECONDS)
        return code

    def stop(self, patience: Callable[[], None], interrupts: Interrupts) -> None:
        """Ask the worker to stop; `patience` is called once it was asked.

        A second interrupt asks again, which means at once; a third ends it. It never waits
        without end.
        """
        if self.wait(0) is not None:
            return
        self._send(signal.SIGINT)
        patience()
        if self._ends_within(STOP_SECONDS, lambda: interrupts.count > 1):
            return
        # Another signal than the first: the worker takes the same one for its echo at first.
        self._send(signal.SIGTERM)
        if self._ends_within(KILL_SECONDS, lambda: interrupts.count > 2):
            return
        self._process.kill()
        self.wait(KILL_SECONDS)

    def _ends_within(self, seconds: float, hurry: Callable[[], bool]) -> bool:
        """Wait for the end, so long at most and no longer than until `hurry`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not hurry():
            if self.wait(LOOK_SECONDS) is not None:
                return True
        return False

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip())
                if self._echo is not None:
                    self._echo(line.rstrip())
