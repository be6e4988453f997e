"""The lookout: finds jobs that became ready behind the place where this worker searches."""

from collections.abc import Callable

from ..hints import LOOK_SECONDS, Hints
from ..managers import JobManager
from .eligibility import Eligibility


class Lookout:
    """A chore that corrects the hints of a busy worker, and wakes idle slots if jobs are there."""

    def __init__(
        self,
        manager: JobManager,
        eligibility: Eligibility,
        hints: Hints,
        on_found: Callable[[], None],
    ) -> None:
        self._manager = manager
        self._eligibility = eligibility
        self._hints = hints
        self._on_found = on_found

    def __call__(self) -> float:
        """Look if the hints are in doubt and there was no look for a while."""
        if self._hints.look_is_due:
            terms = self._eligibility.terms()
            if terms.leases and self._manager.look(terms.leases, terms.queues, hints=self._hints):
                self._on_found()
        return LOOK_SECONDS

    def __str__(self) -> str:
        return "The lookout"
