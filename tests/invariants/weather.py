"""What happens to two workers in a storm: killed, stopped, halted, and cut from their database."""

import contextlib
import itertools
import random
import signal
import time
from collections import Counter

from django.db import connection

from tests.invariants.storm.jobs import LEASE_SECONDS

HALT_SECONDS = LEASE_SECONDS + 1.5
PAUSES = (2.0, 4.0)
CYCLE = ("kill", "halt", "kill", "stop")
GRACE_SECONDS = 0.5


class Weather:
    """Keeps `number` workers running, and lets them run in no peace.

    `start()` gives a context with a worker in it. `counts` says what was done to them.
    """

    def __init__(self, start, number):
        self.counts = Counter()
        self._start = start
        self._all = contextlib.ExitStack()
        self._workers = [self._new() for _ in range(number)]
        self._leaving = []
        self._blows = itertools.cycle(CYCLE)
        self._next_at = time.monotonic() + PAUSES[0]
        self._halted_until = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._all.close()

    def blow(self):
        """Do what is due. Called many times a second."""
        now = time.monotonic()
        for worker, until in list(self._halted_until.items()):
            if now >= until:
                self._go_on(worker)
        self._replace_failed_starts()
        if now >= self._next_at:
            self._next_at = now + random.uniform(*PAUSES)
            at_work = [index for index, worker in enumerate(self._workers) if is_at_work(worker)]
            index = random.choice(at_work) if at_work else None
            if index is not None and self._workers[index] not in self._halted_until:
                getattr(self, f"_{next(self._blows)}")(index)
        if random.random() < 0.05:
            self._cut()

    def is_calm(self):
        """Let every worker run in peace; return whether all are at work."""
        for worker in list(self._halted_until):
            self._go_on(worker)
        self._replace_failed_starts()
        return all(map(is_at_work, self._workers))

    def stop(self):
        """Stop the workers in good order; return how those ended that were asked to.

        A process that is still starting has nothing yet that would end it in good order.
        """
        for worker in self._workers:
            worker.wait_until_started()
            worker.terminate()
        return [worker.exit_code() for worker in [*self._leaving, *self._workers]]

    @property
    def has_been_bad(self):
        """Whether everything has happened at least once."""
        return all(self.counts[word] for word in ("killed", "halted", "stopped"))

    def _new(self):
        return self._all.enter_context(self._start())

    def _kill(self, index):
        self._workers[index].kill()
        self._workers[index] = self._new()
        self.counts["killed"] += 1

    def _stop(self, index):
        self._workers[index].terminate()
        self._leaving.append(self._workers[index])
        self._workers[index] = self._new()
        self.counts["stopped"] += 1

    def _halt(self, index):
        """Let the leases of a living worker run out."""
        worker = self._workers[index]
        worker.send(signal.SIGSTOP)
        self._halted_until[worker] = time.monotonic() + HALT_SECONDS
        self.counts["halted"] += 1

    def _go_on(self, worker):
        del self._halted_until[worker]
        worker.send(signal.SIGCONT)

    def _cut(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM ("
                " SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
                " ORDER BY random() LIMIT 2) AS chosen"
            )
            self.counts["backends terminated"] += cursor.fetchone()[0]

    def _replace_failed_starts(self):
        """A worker whose backend was terminated while it checked the database does not start."""
        for index, worker in enumerate(self._workers):
            if worker.process.poll() is None:
                continue
            assert not has_started(worker), f"a worker ended by itself:\n{worker.errors}"
            self._workers[index] = self._new()
            self.counts["failed starts"] += 1


def has_started(worker):
    return " started: " in worker.output


def is_at_work(worker):
    return worker.process.poll() is None and has_started(worker)
