"""Which jobs this process may claim, and on what terms."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from .. import registry
from ..conf import settings
from ..policy import RetryLimits, ceiling_for, lease_for, max_attempts_for


@dataclass(frozen=True, slots=True)
class Terms:
    """The types a claim may take, each with its lease and attempts, and the queues."""

    leases: Mapping[str, timedelta]
    max_attempts: Mapping[str, int]
    queues: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The terms of a worker that was asked for some types and queues, or for all (None)."""

    types: Collection[str] | None = None
    queues: tuple[str, ...] | None = None

    def terms(self) -> Terms:
        """Return the terms of a claim made now: of the types that this process can run."""
        cap = settings.LEASE_CAP
        lease_cap = None if cap is None else timedelta(seconds=cap)
        job_timeout = timedelta(seconds=settings.JOB_TIMEOUT)
        leases = {}
        max_attempts = {}
        for job_type, handler in registry.handlers().items():
            if self.types is None or job_type in self.types:
                ceiling = ceiling_for(handler.profile, job_timeout=job_timeout)
                leases[job_type] = lease_for(ceiling, lease_cap=lease_cap)
                max_attempts[job_type] = max_attempts_for(
                    handler.profile, default=settings.MAX_ATTEMPTS
                )
        return Terms(leases, max_attempts, self.queues)


def retry_limits(max_attempts: int | None) -> RetryLimits:
    """Return the budget and spacing of a job whose row says `max_attempts`, or nothing."""
    return RetryLimits(
        max_attempts=settings.MAX_ATTEMPTS if max_attempts is None else max_attempts,
        base=timedelta(seconds=settings.RETRY_BASE),
        cap=timedelta(seconds=settings.RETRY_MAX),
    )
