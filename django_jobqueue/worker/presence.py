"""The row by which a worker process can be seen. For people to look at: nothing depends on it."""

import os
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import connections

from .. import __version__
from ..database.clock import database_clock, database_now
from ..logs import get_logger
from ..managers import JobManager
from ..models import WorkerProcess
from .eligibility import Eligibility

logger = get_logger(__name__)

INTERVAL_SECONDS = 15.0

FORGET_AFTER = timedelta(days=1)
"""Rows of processes that ended without a word are removed after this."""

LONGEST_HOST_NAME = 150


def host_name() -> str:
    """Return the name of this machine, as long as a column holds it."""
    return socket.gethostname()[:LONGEST_HOST_NAME]


class Presence:
    """A chore that reports this process every 15 s; `sign_off` removes the row.

    `slots` is how many there are, `busy` returns how many of them run a job.
    """

    def __init__(
        self,
        manager: JobManager,
        eligibility: Eligibility,
        *,
        slots: int,
        busy: Callable[[], int],
    ) -> None:
        self.id = uuid4()
        self._using = manager.write_alias
        self._eligibility = eligibility
        self._slots = slots
        self._busy = busy

    def __call__(self) -> float:
        """Write the row; come again in 15 s."""
        clock = database_clock(connections[self._using])
        seen = {
            "mode": self._eligibility.mode,
            "busy": self._busy(),
            "types": sorted(self._eligibility.terms(heed_throttle=False).leases),
            "seen_at": clock,
        }
        rows = WorkerProcess.objects.using(self._using)
        if not rows.filter(pk=self.id).update(**seen):
            self._sign_on(seen)
        return INTERVAL_SECONDS

    def _sign_on(self, seen: dict[str, Any]) -> None:
        now = database_now(connections[self._using])
        queues = self._eligibility.queues
        first = {
            "host": host_name(),
            "pid": os.getpid(),
            "version": __version__,
            "slots": self._slots,
            "queues": None if queues is None else list(queues),
            "started_at": now,
        }
        rows = WorkerProcess.objects.using(self._using)
        rows.create(pk=self.id, **first, **{**seen, "seen_at": now})
        rows.filter(seen_at__lt=now - FORGET_AFTER).delete()

    def __str__(self) -> str:
        return "The report of this worker process"

    def sign_off(self) -> None:
        """Remove the row, in the chores' own thread, after the last chore."""
        WorkerProcess.objects.using(self._using).filter(pk=self.id).delete()
