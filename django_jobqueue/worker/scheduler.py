"""The scheduler: a chore that syncs declared schedules and fires what is due."""

from django.db import DatabaseError, InterfaceError

from ..database.errors import is_refusal
from ..job_context import log_fields
from ..logs import get_logger
from ..managers import JobManager
from ..schedules.declaring import Declaration, declared
from ..schedules.firing import agenda, fire
from ..schedules.syncing import sync

logger = get_logger(__name__)

LONGEST_PAUSE_SECONDS = 30.0
"""A schedule made by hand is noticed that late at most."""


class Scheduler:
    """Fires the schedules, together with every other worker. Runs in every mode."""

    def __init__(self, manager: JobManager, poll_interval: float) -> None:
        self._manager = manager
        self._longest_pause = min(poll_interval, LONGEST_PAUSE_SECONDS)
        self._synced: dict[str, Declaration] | None = None
        self._complained: dict[int, str] = {}

    def __call__(self) -> float:
        """Fire what is due; come again for the next tick, or after the poll interval."""
        using = self._manager.write_alias
        declarations = declared()
        if declarations != self._synced:
            sync(using, declarations.values())
            self._synced = declarations
        due, seconds = agenda(using, declarations)
        if due:
            for key in due:
                self._fire(key)
            seconds = agenda(using, declarations).next_seconds
        return self._longest_pause if seconds is None else min(seconds, self._longest_pause)

    def __str__(self) -> str:
        return "The scheduler"

    def _fire(self, key: int) -> None:
        """Fire one schedule. One that cannot be used is named once, and harms no other."""
        try:
            jobs = fire(self._manager, key)
        except Exception as error:
            if isinstance(error, DatabaseError | InterfaceError) and not is_refusal(error):
                raise
            self._complain(key, f"{type(error).__name__}: {error}")
            return
        self._complained.pop(key, None)
        for job in jobs:
            logger.info(
                "Job %s (%s) enqueued by %s",
                job.pk,
                job.type,
                job.reason,
                extra=log_fields(job.pk, job.type, queue=job.queue),
            )

    def _complain(self, key: int, problem: str) -> None:
        if self._complained.get(key) != problem:
            self._complained[key] = problem
            logger.error("The schedule with the id %s cannot be fired: %s", key, problem)
