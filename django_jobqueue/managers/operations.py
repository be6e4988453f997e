"""What people do to jobs: cancel, retry, delete, pause, resume."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.db import models, transaction

from ..database import Operating, ReapRequest
from ..exceptions import shown
from ..ids import batches, ids_of
from ..querysets import JobQuerySet, tables_of
from ..signals import job_settled, send_cancelled, send_reaped
from ..states import BulkReport, JobStatus, PauseKind, RetryResult, SkipReason
from .base import TransitionManager
from .bulk import BULK_BATCH, BULK_LIMIT, BULK_TIME, Batch, Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..models import Job

    Jobs: TypeAlias = Job | UUID | str | Iterable[Job | UUID | str]
    """A job, its id, also as text, or several of these."""

ERASE_BATCH = 1000

ERASE_ORDER = ("type", "pk")
"""The rollup's rows are locked in the order of types, across the batches of a transaction too."""

UNENDED_OR_DONE = (JobStatus.PENDING, JobStatus.SUCCEEDED)
"""Neither running nor to be retried."""


class OperatorTransitions(TransitionManager):
    """The transitions that the admin and the command line make."""

    def cancel(self, jobs: "Jobs") -> set[UUID]:
        """Cancel those of the jobs that are pending; return their ids.

        A running job is left alone: its worker decides how it ends. So is a job that somebody
        has locked: it may be on its way to running. `job_settled` is sent for each once the
        change is committed.
        """
        cancelled: set[UUID] = set()
        for ids in batches(sorted(ids_of(jobs)), BULK_BATCH):
            cancelled |= self._cancel(self._among(ids, JobQuerySet.pending))
            # Most locks are a claimer's that chose another row, and gone by now.
            cancelled |= self._cancel(self._among(ids, JobQuerySet.pending))
        return cancelled

    def cancel_all(
        self, jobs: JobQuerySet, *, limit: int = BULK_LIMIT, within: timedelta = BULK_TIME
    ) -> BulkReport:
        """Do what `cancel` does with the jobs that are pending, the oldest first.

        Up to `limit` of them are tried, in batches that begin `within` that time; none is waited
        for, and each is asked about again, locked, before it is changed. With a limit of 0
        nothing changes and the report says what would. A DatabaseError before anything was
        changed is raised, a later one is in the report.
        """
        asked = jobs.using(self.write_alias)
        passed_over = {
            SkipReason.RUNNING: asked.running().count_up_to(),
            SkipReason.STATE: asked.terminal().count_up_to(),
        }
        waiting = asked.pending().order_by("pk")
        sweep = Sweep(self._operating(), waiting, waiting, lambda ids: Batch(self._cancel(ids)))
        return sweep.run(passed_over, limit=limit, within=within)

    def retry(self, jobs: "Jobs") -> dict[UUID, RetryResult]:
        """Make failed or cancelled jobs wait again with their counters reset; answer by id.

        A job in any other state is refused. Of two jobs with one dedup key the first wins; the
        other is reported as a duplicate, and the rest goes on.
        """
        asked = ids_of(jobs)
        results = dict.fromkeys(asked, RetryResult.REFUSED)
        for ids in batches(asked, BULK_BATCH):
            ended = set(self._among(ids, JobQuerySet.retryable))
            if ended:
                results |= dict.fromkeys(ended, RetryResult.LOCKED)
                batch = self._retry([job_id for job_id in ids if job_id in ended])
                results |= dict.fromkeys(batch.done, RetryResult.RETRIED)
                results |= {i: RetryResult(reason.value) for i, reason in batch.skipped.items()}
        return results

    def retry_all(
        self, jobs: JobQuerySet, *, limit: int = BULK_LIMIT, within: timedelta = BULK_TIME
    ) -> BulkReport:
        """Do what `retry` does with the jobs that failed or were cancelled, the oldest first.

        `limit` and `within` as for `cancel_all`.
        """
        asked = jobs.using(self.write_alias)
        ended = asked.retryable()
        passed_over = {
            SkipReason.RUNNING: asked.running().count_up_to(),
            SkipReason.STATE: asked.filter(status__in=UNENDED_OR_DONE).count_up_to(),
            # Left out before the limit: many jobs of one key would fill it at every call.
            SkipReason.DUPLICATE: ended.with_taken_key().count_up_to(),
        }
        eligible = ended.with_free_key().order_by("pk")
        sweep = Sweep(self._operating(), eligible, ended, self._retry)
        return sweep.run(passed_over, limit=limit, within=within)

    def delete_jobs(
        self,
        jobs: "Jobs",
        *,
        batch_size: int = ERASE_BATCH,
    ) -> set[UUID]:
        """Delete those of the jobs that are not running; return their ids.

        The rollup counts the terminal ones, a pending job leaves no trace. A running job is
        refused, and so is one that somebody has locked: it may be on its way to running.
        """
        asked = self.on_write_alias().filter(pk__in=ids_of(jobs)).order_by(*ERASE_ORDER)
        erased: set[UUID] = set()
        for ids in batches(list(asked.values_list("pk", flat=True)), batch_size):
            erased |= self._erase(ids)
        return erased

    def delete_all(
        self, jobs: JobQuerySet, *, limit: int = BULK_LIMIT, within: timedelta = BULK_TIME
    ) -> BulkReport:
        """Do what `delete_jobs` does with the jobs that are not running.

        `limit` and `within` as for `cancel_all`.
        """
        asked = jobs.using(self.write_alias)
        passed_over = {SkipReason.RUNNING: asked.running().count_up_to()}
        eligible = asked.deletable().order_by(*ERASE_ORDER)
        sweep = Sweep(self._operating(), eligible, eligible, lambda ids: Batch(self._erase(ids)))
        return sweep.run(passed_over, limit=limit, within=within)

    def reset_stuck(
        self,
        jobs: JobQuerySet,
        stuck_threshold: timedelta,
        max_attempts: int,
        *,
        limit: int = BULK_LIMIT,
        within: timedelta = BULK_TIME,
    ) -> BulkReport:
        """End the dead claims of jobs at once, as `reap` does, without the reaper's watch.

        Each write asserts again that the job is stuck. `job_settled` is sent for those that
        failed once that is committed; workers are told of the others. `limit` and `within` as
        for `cancel_all`.
        """
        asked = jobs.using(self.write_alias)
        stuck = asked.stuck(stuck_threshold)
        running = asked.running().count_up_to()
        passed_over = {
            SkipReason.RUNNING: max(running - stuck.count_up_to(), 0),
            SkipReason.STATE: asked.exclude(status=JobStatus.RUNNING).count_up_to(),
        }
        request = ReapRequest(stuck_threshold, max_attempts, as_of=None, limit=BULK_BATCH)
        stuck = stuck.order_by("pk")
        sweep = Sweep(self._operating(), stuck, stuck, lambda ids: Batch(self._reset(ids, request)))
        return sweep.run(passed_over, limit=limit, within=within)

    def pause(self, kind: str, name: str, *, reason: str = "") -> bool:
        """Stop claims of a queue or a type until `resume`; False when it was paused already.

        `kind` is "queue" or "type"; ValueError for another. Running jobs finish.
        """
        controls = self._controls()
        _, created = controls.get_or_create(
            kind=kind_of(kind),
            name=name,
            defaults={
                "reason": reason,
                "paused_at": self.now(),
            },
        )
        return created

    def resume(self, kind: str, name: str) -> bool:
        """Allow claims of a queue or a type again; False when it was not paused."""
        from .. import enqueueing

        deleted, _ = self._controls().filter(kind=kind_of(kind), name=name).delete()
        if deleted:
            enqueueing.announce_any(self)
        return bool(deleted)

    def _controls(self) -> models.QuerySet[Any]:
        return tables_of(self.model).control._default_manager.using(self.write_alias)

    def _among(
        self, ids: "Sequence[UUID]", words: "Callable[[JobQuerySet], JobQuerySet]"
    ) -> list[UUID]:
        """Return those of the ids whose jobs the words describe, without locking any."""
        jobs = words(self.on_write_alias().filter(pk__in=ids))
        return list(jobs.order_by("pk").values_list("pk", flat=True))

    def _cancel(self, ids: "Sequence[UUID]") -> set[UUID]:
        if not ids:
            return set()
        cancelled = self._operating().cancel(ids)
        if cancelled and job_settled.has_listeners(self.model):
            transaction.on_commit(
                lambda: send_cancelled(self.model, cancelled), using=self.write_alias, robust=True
            )
        return {job.pk for job in cancelled}

    def _retry(self, ids: "Sequence[UUID]") -> Batch:
        from .. import enqueueing

        retried = self._operating().retry(ids)
        if retried.jobs:
            enqueueing.announce(self, retried.jobs)
        skipped = dict.fromkeys(retried.duplicates, SkipReason.DUPLICATE)
        skipped |= dict.fromkeys(retried.disputed, SkipReason.LOCKED)
        return Batch({job.pk for job in retried.jobs}, skipped)

    def _erase(self, ids: "Sequence[UUID]") -> set[UUID]:
        idle = self.on_write_alias().deletable().filter(pk__in=ids)
        return set(self._database().erase(idle.order_by("pk")))

    def _reset(self, ids: "Sequence[UUID]", request: ReapRequest) -> set[UUID]:
        from .. import enqueueing

        reaped = self._database().reap(self.on_write_alias().filter(pk__in=ids), request)
        transaction.on_commit(
            lambda: send_reaped(self.model, reaped, self.write_alias),
            using=self.write_alias,
            robust=True,
        )
        waiting = [job.job_id for job in reaped if not job.failed]
        if waiting:
            enqueueing.announce(self, self.on_write_alias().filter(pk__in=waiting))
        return {job.job_id for job in reaped}

    def _operating(self) -> Operating:
        return Operating(tables_of(self.model), self.write_alias)


def kind_of(kind: str) -> PauseKind:
    """Return what is paused; raise ValueError for what cannot be."""
    if kind in PauseKind.values:
        return PauseKind(kind)
    raise ValueError(f"kind is {shown(kind)}; expected 'queue' or 'type', as in pause('queue', …).")
