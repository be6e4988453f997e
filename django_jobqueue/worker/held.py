"""The claims that this process holds while their handlers run."""

import threading
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from ..models import Job
from ..states import Claim


class Held(NamedTuple):
    """A claim whose handler runs, with what one needs to speak of it."""

    claim: Claim
    job_type: str
    lease: timedelta


class HeldClaims:
    """A thread-safe set of held claims: in at the claim, out before the settle is sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_token: dict[UUID, Held] = {}

    def add(self, job: Job) -> None:
        """Take in the claim of a job just claimed."""
        if (claim := job.claim) is not None:
            lease = timedelta(seconds=job.lease_seconds or 0)
            with self._lock:
                self._by_token[claim.token] = Held(claim, job.type, lease)

    def remove(self, token: UUID) -> Held | None:
        """Let a claim go, and return it; None when it was not held."""
        with self._lock:
            return self._by_token.pop(token, None)

    def all(self) -> list[Held]:
        """Return the claims held now."""
        with self._lock:
            return list(self._by_token.values())

    def __len__(self) -> int:
        return len(self._by_token)
