"""The transitions of jobs: no one else writes job state.

A transition is one conditional statement that reports whether it happened. Those made on behalf
of a claim match the job's id, the claim's token and `status = running`, so a worker that died,
stalled or was replaced changes nothing. Answers are keyed by claim token.

Every statement goes to the alias that the router names for writing `Job`, or to the one given
with `Job.objects.db_manager(alias)`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from asgiref.sync import sync_to_async

from ..querysets import JobQuerySet, tables_of
from .claims import ClaimTransitions
from .operations import ERASE_BATCH, OperatorTransitions
from .upkeep import REAP_BATCH, UpkeepTransitions

if TYPE_CHECKING:
    from ..enqueueing import EnqueueOptions, JobRequest
    from ..models import Job

__all__ = [
    "ERASE_BATCH",
    "REAP_BATCH",
    "JobManager",
    "JobQuerySet",
    "tables_of",
]


class JobManager(ClaimTransitions, OperatorTransitions, UpkeepTransitions):
    """Every transition there is, beginning with the first."""

    def enqueue(
        self,
        type: str,  # noqa: A002 (the contract's word)
        payload: Mapping[str, Any] | None = None,
        **options: "Unpack[EnqueueOptions]",
    ) -> "Job":
        """Insert one job and return it, or the active job that has its dedup key, untouched.

        Options: `queue` ("default"); `priority` (0; lower runs sooner); `subject`, a pair of
        type and id; `dedup_key`, by default type and subject where there is a subject;
        `skip_dedup` (no key at all); `scheduled_for` (datetime) or `delay` (timedelta or
        seconds); `reason`; `org_id`.

        The INSERT is part of the caller's transaction. Raises InvalidJob or InvalidPayload
        before any SQL, TypeError for another option, EnqueueConflict when a colliding job kept
        vanishing.
        """
        from .. import enqueueing

        return enqueueing.enqueue(self, enqueueing.requested(type, payload, options))

    async def aenqueue(
        self,
        type: str,  # noqa: A002 (the contract's word)
        payload: Mapping[str, Any] | None = None,
        **options: "Unpack[EnqueueOptions]",
    ) -> "Job":
        """Do what `enqueue` does, from async code."""
        return await sync_to_async(self.enqueue)(type, payload, **options)

    def enqueue_many(self, requests: "Iterable[JobRequest]") -> "list[Job]":
        """Enqueue all requests or none; return their jobs in the order asked.

        Requests with one dedup key share one job. An error names the index of the bad request.
        """
        from .. import enqueueing

        return enqueueing.enqueue_many(self, requests)

    def insert(self, jobs: "Sequence[Job]", delays: Mapping[UUID, timedelta]) -> set[UUID]:
        """Insert the jobs whose dedup key is free; return their ids.

        A job in `delays` is scheduled that long after now. `enqueue` calls this; nothing else
        should, as nothing is checked here.
        """
        return self._database().insert(jobs, delays)
