"""A queue that a simulated worker empties: real rows, and a timeline to compare estimates with."""

import heapq
import random
import uuid
from dataclasses import dataclass
from datetime import timedelta

from django_jobqueue.ids import uuid7
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.insights.rows import worker

WORKER = "web:1"


@dataclass
class Simulated:
    """One job: what it is, and when the worker took it and was done with it."""

    id: uuid.UUID
    type: str
    priority: int
    seconds: float
    arrives: float
    starts: float = 0.0
    ends: float = 0.0


class Simulation:
    """`slots` slots run jobs of several types, by priority and age, for random durations.

    Jobs arrive at the beginning, and a few later; nobody knows the duration of a job beforehand.
    """

    MEANS = {"sim.short": 2.0, "sim.middle": 10.0, "sim.long": 40.0}  # noqa: RUF012

    def __init__(self, seed, *, jobs=400, slots=4):
        self.random = random.Random(seed)
        self.slots = slots
        ids = sorted(uuid7() for _ in range(jobs))
        self.jobs = [self._job(pk, 0.0 if n < 0.9 * jobs else None) for n, pk in enumerate(ids)]
        self._run()

    def _job(self, pk, arrives):
        job_type = self.random.choice(list(self.MEANS))
        mean = self.MEANS[job_type]
        spread = self.random.choice([0.5, 1.0])
        seconds = mean * self.random.lognormvariate(-(spread**2) / 2, spread)
        if arrives is None:
            arrives = self.random.uniform(0.0, 600.0)
        return Simulated(pk, job_type, self.random.choice([-5, 0, 0, 0, 5]), seconds, arrives)

    def _run(self):
        waiting = list(self.jobs)
        free_at = [0.0] * self.slots
        while waiting:
            now = heapq.heappop(free_at)
            here = [job for job in waiting if job.arrives <= now]
            if not here:
                heapq.heappush(free_at, min(job.arrives for job in waiting))
                continue
            job = min(here, key=lambda one: (one.priority, one.id))
            waiting.remove(job)
            job.starts, job.ends = now, now + job.seconds
            heapq.heappush(free_at, job.ends)

    def when_finished(self, count):
        """Return the moment at which so many jobs are done."""
        return sorted(job.ends for job in self.jobs)[count - 1]

    def write(self, moment, now):
        """Write the rows as they are at a moment of the simulation, which is `now` outside."""

        def outside(inside):
            return now + timedelta(seconds=inside - moment)

        Job.objects.bulk_create(
            Job(
                id=job.id,
                type=job.type,
                priority=job.priority,
                created_at=outside(job.arrives),
                ready_at=outside(job.arrives),
                **self._state(job, moment, outside),
            )
            for job in self.jobs
            if job.arrives <= moment
        )
        worker(*self.MEANS, slots=self.slots)

    def _state(self, job, moment, outside):
        if job.starts > moment:
            return {"status": JobStatus.PENDING}
        started = {"started_at": outside(job.starts), "worker": f"{WORKER}:0", "attempts": 1}
        if job.ends <= moment:
            ended = {"status": JobStatus.SUCCEEDED, "finished_at": outside(job.ends)}
            return started | ended
        claim = {"claim_token": uuid.uuid4(), "lease_expires_at": outside(moment + 90)}
        return started | claim | {"status": JobStatus.RUNNING, "lease_seconds": 90.0}
