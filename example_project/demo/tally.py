"""How the demonstration's jobs stand, read from the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus

from ..files.progress import label_of

IDS_A_QUERY = 500
SMALL_COLUMNS = (
    "id",
    "type",
    "status",
    "attempts",
    "subject_id",
    "last_error",
    "started_at",
    "finished_at",
)


@dataclass(frozen=True, slots=True)
class Step:
    """The jobs of one type."""

    label: str
    jobs: list[Job]

    def count(self, *statuses: str) -> int:
        """Return how many jobs are in one of these statuses."""
        return sum(job.status in statuses for job in self.jobs)

    @property
    def total(self) -> int:
        """How many jobs there are."""
        return len(self.jobs)

    @property
    def succeeded(self) -> int:
        """How many jobs are done."""
        return self.count(JobStatus.SUCCEEDED)

    @property
    def failed(self) -> int:
        """How many jobs failed or were cancelled, and will not run again."""
        return self.count(JobStatus.FAILED, JobStatus.CANCELLED)

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return self.count(JobStatus.RUNNING)

    @property
    def waiting_for_retry(self) -> int:
        """How many jobs wait after an attempt that failed."""
        return sum(job.status == JobStatus.PENDING and job.attempts > 0 for job in self.jobs)

    @property
    def retried(self) -> int:
        """How many jobs were started more than once."""
        return sum(job.attempts > 1 for job in self.jobs)

    @property
    def over(self) -> int:
        """How many jobs are over."""
        return self.succeeded + self.failed

    @property
    def typical_seconds(self) -> float | None:
        """The median time a job ran that succeeded, None when none did."""
        times = [
            (job.finished_at - job.started_at) / timedelta(seconds=1)
            for job in self.jobs
            if job.status == JobStatus.SUCCEEDED and job.started_at and job.finished_at
        ]
        return median(times) if times else None


class Tally:
    """The steps of a fixed set of jobs, at the moment of the last `read`."""

    def __init__(self, ids: Sequence[UUID]) -> None:
        self._ids = list(dict.fromkeys(ids))
        self.steps: list[Step] = []
        self.read()

    def read(self) -> None:
        """Read the jobs again."""
        jobs: list[Job] = []
        for start in range(0, len(self._ids), IDS_A_QUERY):
            part = self._ids[start : start + IDS_A_QUERY]
            jobs += Job.objects.filter(id__in=part).only(*SMALL_COLUMNS).order_by("id")
        by_type: dict[str, list[Job]] = {}
        for job in jobs:
            by_type.setdefault(job.type, []).append(job)
        self.steps = [Step(label_of(name), group) for name, group in by_type.items()]

    @property
    def all(self) -> Step:
        """All jobs as one."""
        return Step("All", [job for step in self.steps for job in step.jobs])

    def state(self) -> dict[str, Any]:
        """Return the numbers that tell whether anything moved."""
        everything = self.all
        return {
            "over": everything.over,
            "running": everything.running,
            "waiting for a retry": everything.waiting_for_retry,
        }
