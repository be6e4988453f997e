"""`--drain`: when a worker has done all it can, and what is left then."""

from collections.abc import Callable
from datetime import timedelta

from django.db import connections

from ..database.clock import database_now
from ..managers import JobManager
from .eligibility import Eligibility

CHECK_SECONDS = 1.0

PATIENCE = timedelta(minutes=2)
"""A job this worker ran holds the drain while its retry is due within this time."""


class Drain:
    """A chore that finds out when a draining worker is done.

    Done is: no slot is busy, no ready job is left that this worker may claim, and no job that it
    ran waits for a retry due within two minutes. `claims` returns how many jobs were claimed.
    """

    def __init__(
        self,
        manager: JobManager,
        eligibility: Eligibility,
        *,
        worker_prefix: str,
        slots: int,
        all_idle: Callable[[], bool],
        claims: Callable[[], int],
        on_drained: Callable[[], None],
    ) -> None:
        self._manager = manager
        self._eligibility = eligibility
        self._worker_prefix = worker_prefix
        self._slots = slots
        self._all_idle = all_idle
        self._claims = claims
        self._on_drained = on_drained

    def __call__(self) -> float:
        """Look once; come again in a second, or sooner when a slot becomes idle."""
        claims = self._claims()
        # Retries first: one that is promoted in between is then seen among the ready jobs.
        done = self._all_idle() and not self._waits_for_retry() and not self._work_left()
        # A slot may have claimed while we looked; then it is busy, or has been.
        if done and self._all_idle() and self._claims() == claims:
            self._on_drained()
        return CHECK_SECONDS

    def __str__(self) -> str:
        return "The drain check"

    def _waits_for_retry(self) -> bool:
        manager = self._manager
        soon = database_now(connections[manager.write_alias]) + PATIENCE
        ran_here = manager.on_write_alias().due(soon)
        return ran_here.filter(worker__startswith=self._worker_prefix).exists()

    def _work_left(self) -> bool:
        if not self._slots:
            return False  # Nothing is left that this worker may claim.
        terms = self._eligibility.terms(heed_throttle=False)
        jobs = self._manager.on_write_alias()
        return jobs.takeable(terms.leases, terms.queues).exists()


def leftovers(manager: JobManager, eligibility: Eligibility) -> dict[str, int]:
    """Count the active jobs a drained worker leaves, by the reason; reasons without any are out."""
    terms = eligibility.terms(heed_throttle=False)
    jobs = manager.on_write_alias()
    takeable = jobs.takeable(terms.leases, terms.queues).count()
    ready = jobs.ready().count()
    unpaused = jobs.ready().not_paused().count()
    counts = {
        "scheduled for later": jobs.scheduled().count(),
        "running elsewhere": jobs.running().count(),
        "paused": ready - unpaused,
        "of other types or queues": unpaused - takeable,
        "ready": takeable,
    }
    return {reason: count for reason, count in counts.items() if count > 0}
