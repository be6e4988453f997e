"""Which jobs this process may claim, and on what terms."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from .. import offload, registry
from ..conf import parse_worker_mode, settings, warn_once
from ..handlers.base import JobHandler
from ..logs import get_logger
from ..policy import RateLimitBudget, RetryLimits, ceiling_for, lease_for, max_attempts_for
from ..states import WorkerMode
from ..throttle import Throttle

logger = get_logger(__name__)

MOST_KNOWN = 100
"""So many situations are remembered with their terms: modes, and sets of closed providers."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The types a claim may take, each with its lease and attempts, and the queues."""

    leases: Mapping[str, timedelta]
    max_attempts: Mapping[str, int]
    queues: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The terms of a worker that was asked for some types and queues, or for all (None).

    `fixed_mode`: the mode the command line gave; None reads the setting at every claim.
    """

    types: Collection[str] | None = None
    queues: tuple[str, ...] | None = None
    fixed_mode: WorkerMode | None = None
    throttle: Throttle = field(default_factory=Throttle)
    _known: dict[Hashable, Terms] = field(default_factory=dict, repr=False, compare=False)

    @property
    def mode(self) -> WorkerMode:
        """The mode that counts now."""
        return self.fixed_mode or parse_worker_mode(settings.WORKER_MODE)

    def terms(self, *, heed_throttle: bool = True) -> Terms:
        """Return the terms of a claim made now: of the types that this process can run.

        Types whose provider asked to wait are left out, unless `heed_throttle` is False. Asked for
        at every claim, so the last answers are kept while what they stand on is the same.
        """
        mode = self.mode
        situation = (
            mode,
            offload.offered_types() - extra_types() if mode is WorkerMode.SYSTEM else frozenset(),
            self.throttle.closed() if heed_throttle else frozenset(),
            registry.version(),
            (settings.LEASE_CAP, settings.JOB_TIMEOUT, settings.MAX_ATTEMPTS),
        )
        terms = self._known.get(situation)
        if terms is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            terms = self._known[situation] = self._terms(*situation[:3])
        return terms

    def _terms(self, mode: WorkerMode, elsewhere: frozenset[str], closed: frozenset[str]) -> Terms:
        cap = settings.LEASE_CAP
        lease_cap = None if cap is None else timedelta(seconds=cap)
        leases = {}
        max_attempts = {}
        for job_type, handler in self._handlers(mode, elsewhere).items():
            if handler.provider is None or handler.provider not in closed:
                leases[job_type] = lease_for(ceiling_of(handler), lease_cap=lease_cap)
                max_attempts[job_type] = max_attempts_for(
                    handler.profile, default=settings.MAX_ATTEMPTS
                )
        return Terms(leases, max_attempts, self.queues)

    def _handlers(self, mode: WorkerMode, elsewhere: frozenset[str]) -> dict[str, JobHandler]:
        if mode is WorkerMode.OFF:
            return {}
        handlers = {n: h for n, h in registry.handlers().items() if n not in elsewhere}
        if self.types is not None:
            handlers = {name: h for name, h in handlers.items() if name in self.types}
        return handlers


def extra_types() -> frozenset[str]:
    """Return `SYSTEM_MODE_EXTRA_TYPES` without names that no handler has; warn once of each."""
    named = frozenset(settings.SYSTEM_MODE_EXTRA_TYPES)
    known = named & frozenset(registry.types())
    for name in sorted(named - known):
        warn_once(logger, "SYSTEM_MODE_EXTRA_TYPES names %r, which has no handler.", name)
    return known


def ceiling_of(handler: JobHandler) -> timedelta | None:
    """Return how long an attempt of a handler may run; None for no ceiling."""
    return ceiling_for(handler.profile, job_timeout=timedelta(seconds=settings.JOB_TIMEOUT))


def limits_of(max_attempts: int | None) -> RetryLimits:
    """Return the budgets and spacing of a job whose row says `max_attempts`, or nothing."""
    return RetryLimits(
        max_attempts=settings.MAX_ATTEMPTS if max_attempts is None else max_attempts,
        base=timedelta(seconds=settings.RETRY_BASE),
        cap=timedelta(seconds=settings.RETRY_MAX),
        rate_limit=RateLimitBudget(
            max_hits=settings.RATE_LIMIT_MAX_HITS,
            base=timedelta(seconds=settings.RATE_LIMIT_BASE),
            cap=timedelta(seconds=settings.RATE_LIMIT_MAX),
        ),
    )
