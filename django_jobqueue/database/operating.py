"""What operators do to sets of jobs, the same on every database.

A short transaction each: the rows are locked first, in id order and with SKIP LOCKED where the
database has it, and only locked rows are changed. A row that somebody holds is left out.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import DatabaseError, IntegrityError, connections, transaction

from ..states import RETRYABLE_STATUSES, JobStatus
from .base import DEDUP_COLUMN, Tables
from .clock import database_now
from .errors import is_lock_timeout, retry_conflicts

if TYPE_CHECKING:
    from ..models import Job
    from ..querysets import JobQuerySet

Answer = TypeVar("Answer")

TOLD = (
    "type",
    "queue",
    "status",
    "attempts",
    "dedup_key",
    "subject_type",
    "subject_id",
    "org_id",
    "last_error",
    "created_at",
    "scheduled_for",
)
"""What of a changed row the callers tell others: never what the job carries."""

KEY_WAIT = "200ms"
"""How long a retry waits for a transaction that is about to take, or free, its dedup key."""


SET_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %s, true)"


class Retried(NamedTuple):
    """The jobs that wait again, and the ids of those whose dedup key is taken or in dispute."""

    jobs: "list[Job]"
    duplicates: set[UUID]
    disputed: set[UUID]


class Operating:
    """The transitions of operators on one alias."""

    def __init__(self, tables: Tables, using: str) -> None:
        self.tables = tables
        self.using = using
        self.connection = connections[using]

    def with_locked(
        self,
        jobs: "JobQuerySet",
        ids: Sequence[UUID],
        change: Callable[[Sequence[UUID]], Answer],
    ) -> Answer:
        """Lock those of the ids that nobody else has, and change those of them that are in `jobs`.

        `ids` were read a while ago. Under the locks `jobs` is asked again, so that what has left
        it since stays as it is. All in one transaction.
        """

        def run() -> Answer:
            locked = [job.pk for job in self._locked(ids)]
            still = set(jobs.filter(pk__in=locked).values_list("pk", flat=True))
            return change([job_id for job_id in ids if job_id in still])

        return self._transaction(run)

    def cancel(self, ids: Collection[UUID]) -> "list[Job]":
        """Cancel those of the jobs that are pending and that nobody has locked; return them."""

        def run() -> "list[Job]":
            waiting = [job for job in self._locked(ids) if job.status == JobStatus.PENDING]
            self._change(
                waiting,
                [JobStatus.PENDING],
                status=JobStatus.CANCELLED,
                scheduled_for=None,
                finished_at=database_now(self.connection),
            )
            return waiting

        return self._transaction(run)

    def retry(self, ids: Sequence[UUID]) -> Retried:
        """Make those that failed or were cancelled wait again, if nobody has them locked.

        Of several jobs with one dedup key the first in the order of `ids` wins.
        """
        places = {job_id: place for place, job_id in enumerate(ids)}

        def run() -> Retried:
            ended = [job for job in self._locked(ids) if job.status in RETRYABLE_STATUSES]
            ended.sort(key=lambda job: places[job.pk])
            retried, duplicates = self._split_by_key(ended)
            unkeyed = [job for job in retried if job.dedup_key is None]
            keyed = [job for job in retried if job.dedup_key is not None]
            self._wait_again(unkeyed)
            # In the order of their keys, as enqueues take them.
            lost = self._take_keys(sorted(keyed, key=lambda job: job.dedup_key or ""))
            taken = {job_id for job_id, collided in lost.items() if collided}
            return Retried(
                [job for job in retried if job.pk not in lost],
                {job.pk for job in duplicates} | taken,
                set(lost) - taken,
            )

        return self._transaction(run)

    def _locked(self, ids: Collection[UUID]) -> "JobQuerySet":
        # By the primary key alone: a condition on the status attracts the partial indexes.
        jobs = self._jobs().filter(pk__in=ids).order_by("pk").only(*TOLD)
        features = self.connection.features
        if not features.has_select_for_update_skip_locked:
            return jobs
        no_key = features.has_select_for_no_key_update
        return jobs.select_for_update(skip_locked=True, no_key=no_key)

    def _split_by_key(self, jobs: "Sequence[Job]") -> "tuple[list[Job], list[Job]]":
        """Return the jobs whose dedup key is free, the first of each key, and the others."""
        keys = {job.dedup_key for job in jobs if job.dedup_key is not None}
        taken: set[str | None] = set()
        if keys:
            active = self._jobs().active().filter(dedup_key__in=keys)
            taken |= set(active.values_list("dedup_key", flat=True))
        free: list[Job] = []
        others: list[Job] = []
        for job in jobs:
            (others if job.dedup_key in taken else free).append(job)
            if job.dedup_key is not None:
                taken.add(job.dedup_key)
        return free, others

    def _take_keys(self, jobs: "Sequence[Job]") -> dict[UUID, bool]:
        """Make jobs with dedup keys wait again, each key free when it was looked at.

        Return the ids of those that lost their key since: whether it was to a committed job. The
        database names no culprit of many, so it is found by halves.
        """
        if not jobs:
            return {}
        try:
            with transaction.atomic(using=self.using), self._short_waits():
                self._wait_again(jobs)
        except IntegrityError as error:
            if DEDUP_COLUMN not in str(error):
                raise
            collided = True
        except DatabaseError as error:
            if not is_lock_timeout(error):
                raise
            collided = False
        else:
            return {}
        if len(jobs) == 1:
            return {jobs[0].pk: collided}
        middle = len(jobs) // 2
        return self._take_keys(jobs[:middle]) | self._take_keys(jobs[middle:])

    def _wait_again(self, jobs: "Sequence[Job]") -> None:
        self._change(
            jobs,
            RETRYABLE_STATUSES,
            status=JobStatus.PENDING,
            attempts=0,
            rate_limit_hits=0,
            rate_limited_at=None,
            result=None,
            scheduled_for=None,
            ready_at=database_now(self.connection),
            started_at=None,
            finished_at=None,
        )

    def _change(self, jobs: "Sequence[Job]", states: Iterable[JobStatus], **columns: Any) -> None:
        """Change locked rows, all of them or none."""
        if not jobs:
            return
        rows = self._jobs().filter(pk__in=[job.pk for job in jobs])
        if not self.connection.features.has_select_for_update_skip_locked:
            rows = rows.filter(status__in=states)
        changed = rows.update(**columns)
        if changed != len(jobs):
            raise transaction.TransactionManagementError(
                f"{len(jobs)} jobs were locked and {changed} changed: the database does not keep "
                "locked rows from changing. Nothing was changed."
            )
        for job in jobs:
            job.status = columns["status"]
            job.scheduled_for = None

    @contextmanager
    def _short_waits(self) -> Iterator[None]:
        """Give up soon on a key that another transaction is about to take, where that can be.

        So two retries that want each other's keys do not deadlock either. The setting ends with
        the block, or with the savepoint around it when that is rolled back.
        """
        if self.connection.vendor != "postgresql":
            yield
            return
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('lock_timeout')")
            before = cursor.fetchone()
            cursor.execute(SET_LOCK_TIMEOUT, [KEY_WAIT])
            yield
            cursor.execute(SET_LOCK_TIMEOUT, before)

    def _jobs(self) -> "JobQuerySet":
        return self.tables.job._default_manager.using(self.using)

    def _transaction(self, run: Callable[[], Answer]) -> Answer:
        def atomically() -> Answer:
            with transaction.atomic(using=self.using):
                return run()

        return retry_conflicts(self.connection, atomically)
