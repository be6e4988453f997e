"""What people do to jobs: cancel, retry, delete, pause, resume."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import IntegrityError, models, transaction
from django.db.models import Q

from ..ids import batches, ids_of
from ..querysets import tables_of
from ..signals import job_settled, send_cancelled
from ..states import JobStatus, PauseKind, RetryResult
from .base import TransitionManager

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..models import Job

ERASE_BATCH = 1000


class OperatorTransitions(TransitionManager):
    """The transitions that the admin and the command line make."""

    def cancel(self, jobs: "Job | UUID | Iterable[Job | UUID]") -> set[UUID]:
        """Cancel those of the jobs that are pending; return their ids.

        A running job is left alone: its worker decides how it ends. `job_settled` is sent for
        each once the change is committed.
        """
        cancelled = {job_id for job_id in sorted(ids_of(jobs)) if self._cancel(job_id)}
        if cancelled and job_settled.has_listeners(self.model):
            ended = list(self.on_write_alias().filter(pk__in=cancelled))
            transaction.on_commit(
                lambda: send_cancelled(self.model, ended), using=self.write_alias, robust=True
            )
        return cancelled

    def retry(self, jobs: "Job | UUID | Iterable[Job | UUID]") -> dict[UUID, RetryResult]:
        """Make failed or cancelled jobs wait again with their counters reset; answer by id.

        A job in any other state is refused. Of two jobs with one dedup key the first wins; the
        other is reported as a duplicate, and the rest goes on.
        """
        from .. import enqueueing

        results = {job_id: self._retry(job_id) for job_id in ids_of(jobs)}
        retried = [job_id for job_id, result in results.items() if result is RetryResult.RETRIED]
        if retried:
            enqueueing.announce(self, self.on_write_alias().filter(pk__in=retried))
        return results

    def delete_jobs(
        self, jobs: "Job | UUID | Iterable[Job | UUID]", *, batch_size: int = ERASE_BATCH
    ) -> set[UUID]:
        """Delete those of the jobs that are not running; return their ids.

        The rollup counts the terminal ones, a pending job leaves no trace. A running job is
        refused, and so is one that somebody has locked: it may be on its way to running.
        """
        # By type, as the rollup's rows are locked in that order across the batches too.
        asked = self.on_write_alias().filter(pk__in=ids_of(jobs)).order_by("type", "pk")
        idle = self.on_write_alias().exclude(status=JobStatus.RUNNING).order_by("pk")
        erased: set[UUID] = set()
        for ids in batches(list(asked.values_list("pk", flat=True)), batch_size):
            erased.update(self._database().erase(idle.filter(pk__in=ids)))
        return erased

    def pause(self, kind: str, name: str, *, reason: str = "") -> bool:
        """Stop claims of a queue or a type until `resume`; False when it was paused already.

        `kind` is "queue" or "type". Running jobs finish.
        """
        controls = self._controls()
        _, created = controls.get_or_create(
            kind=PauseKind(kind),
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

        deleted, _ = self._controls().filter(kind=PauseKind(kind), name=name).delete()
        if deleted:
            enqueueing.announce_any(self)
        return bool(deleted)

    def _controls(self) -> models.QuerySet[Any]:
        return tables_of(self.model).control._default_manager.using(self.write_alias)

    def _cancel(self, job_id: UUID) -> bool:
        changed = (
            self.on_write_alias()
            .pending()
            .filter(pk=job_id)
            .update(
                status=JobStatus.CANCELLED,
                scheduled_for=None,
                finished_at=self.now(),
            )
        )
        return bool(changed)

    def _retry(self, job_id: UUID) -> RetryResult:
        alias = self.write_alias
        waiting = {
            "status": JobStatus.PENDING,
            "attempts": 0,
            "rate_limit_hits": 0,
            "rate_limited_at": None,
            "result": None,
            "scheduled_for": None,
            "started_at": None,
            "finished_at": None,
        }
        ended = Q(status__in=[JobStatus.FAILED, JobStatus.CANCELLED])
        try:
            with transaction.atomic(using=alias):
                now = self.now()
                job = self.on_write_alias().filter(ended, pk=job_id)
                changed = job.update(ready_at=now, **waiting)
        except IntegrityError:
            return RetryResult.DUPLICATE
        return RetryResult.RETRIED if changed else RetryResult.REFUSED
