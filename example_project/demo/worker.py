"""The real worker, as a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable

from django.conf import settings

KEPT_LINES = 400
# A little more than the worker grants its jobs at a stop, and needs after that.
STOP_SECONDS = 35.0
KILL_SECONDS = 5.0

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

    def stop(self, patience: Callable[[], None]) -> None:
        """Ask the worker to stop; `patience` is called once it was asked.

        Ctrl-C while waiting asks again, which means at once. It never waits without end.
        """
        if self.wait(0) is not None:
            return
        self._send(signal.SIGINT)
        patience()
        with contextlib.suppress(KeyboardInterrupt):
            if self.wait(STOP_SECONDS) is not None:
                return
        self._send(signal.SIGINT)
        with contextlib.suppress(KeyboardInterrupt):
            if self.wait(KILL_SECONDS) is not None:
                return
        self._process.kill()
        self.wait(KILL_SECONDS)

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
