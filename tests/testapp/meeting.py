"""Where a handler, in whatever process, tells its test that it runs, and waits to be let go.

Nothing is polled and nothing is timed: the test accepts a connection, the handler reads its end.
A handler whose test is gone reads the end of the stream and goes on.
"""

import contextlib
import json
import socket

SECONDS = 30
HERE = "127.0.0.1"


class Meeting:
    """The test's side. `payload` is what the job needs to find it."""

    def __init__(self):
        self._server = socket.create_server((HERE, 0))
        self._server.settimeout(SECONDS)
        self._guests = []
        self.payload = {"port": self._server.getsockname()[1]}

    def guest(self):
        """Return the next handler that arrives."""
        try:
            door, _ = self._server.accept()
        except TimeoutError:
            raise AssertionError(f"No handler arrived within {SECONDS} s.") from None
        door.settimeout(SECONDS)
        guest = Guest(door)
        self._guests.append(guest)
        return guest

    def nobody_waits(self):
        """Tell whether no further handler has arrived until now."""
        self._server.settimeout(0)
        try:
            self._server.accept()[0].close()
        except BlockingIOError:
            return True
        finally:
            self._server.settimeout(SECONDS)
        return False

    def close(self):
        """Let everybody go."""
        self._server.close()
        for guest in self._guests:
            guest.let_go()


class Guest:
    """A handler that waits."""

    def __init__(self, door):
        self._door = door
        with door.makefile() as lines:
            self.news = json.loads(lines.readline())
        self.job_id = self.news["job"]

    def let_go(self, answer=None):
        """Let the handler return `answer`."""
        if self._door.fileno() != -1:
            with contextlib.suppress(OSError):  # Its process may be gone.
                self._door.sendall(json.dumps(answer).encode())
            self._door.close()


def meet(job, **news):
    """Tell the test that `job` runs, and return its answer when it gives one."""
    with socket.create_connection((HERE, job.payload["port"])) as door:
        door.sendall(json.dumps({"job": str(job.pk), **news}).encode() + b"\n")
        with door.makefile() as lines:
            return json.loads(lines.read() or "null")
