"""Run one job, on the path that a worker takes."""

import os
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.db import connections

from .. import registry
from ..enqueueing import EnqueueOptions
from ..exceptions import HandlerNotFound, JobQueueError
from ..handlers.base import JobHandler
from ..ids import uuid7
from ..models import Job
from ..policy import Ending
from ..states import Claim, Decision, JobStatus, SettleOutcome, WorkerMode
from ..throttle import Throttle
from ..worker.eligibility import Eligibility
from ..worker.events import log_settled
from ..worker.execution import Execution
from ..worker.presence import host_name
from ..worker.requests import Settled
from ..worker.running import Running
from ..worker.settling import Outcomes, conclude, settle_alone
from .clock import standing_at
from .naming import Named, ResultLike, TaskLike, id_of, type_of
from .surroundings import CallersThread, check_open, contained, savepoint

if TYPE_CHECKING:
    from ..database import ClaimOptions


class NotRunnable(JobQueueError):
    """`run_job` was given a job that no worker would run: the message says why."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One attempt that a test ran.

    `job`: the row as the attempt left it. `attempt`: its number, from 1. `outcome`: what the settle
    recorded. `error`: what the handler raised, or what kept its result from being stored; None
    when it succeeded.
    """

    job: Job
    attempt: int
    outcome: SettleOutcome
    error: BaseException | None = None

    @property
    def result(self) -> Any:
        """The stored result, as the database gives it back."""
        return self.job.result

    def raise_error(self) -> None:
        """Raise what the handler raised, if it did, with a note on what became of the job."""
        if self.error is not None:
            self.error.add_note(
                f"Raised by {self.job}, attempt {self.attempt}: {self.outcome.value}. "
                "With raise_errors=False the test goes on and can look at the job."
            )
            raise self.error


class Bench:
    """One slot without a thread: it claims, runs and settles in the thread of the test.

    `types`, `queues`: what it claims, None for all. Providers' gates are open at first, and live
    by the queue's clock.
    """

    def __init__(
        self, types: Collection[str] | None = None, queues: Sequence[str] | None = None
    ) -> None:
        self.manager = Job.objects.db_manager(Job.objects.write_alias)
        self.throttle = Throttle(lambda: self.manager.now().timestamp())
        self.eligibility = Eligibility(
            types, None if queues is None else tuple(queues), WorkerMode.ALL, self.throttle
        )
        self._worker = f"{host_name()}:{os.getpid()}:test"
        self._error: BaseException | None = None
        self._execution = Execution(
            CallersThread(),
            self.throttle,
            threading.Event(),
            on_start=lambda _: None,
            on_end=self._note,
            surroundings=contained,
        )

    def run_next(self, ids: Sequence[UUID] | None = None) -> JobRun | None:
        """Run the job that a worker would take next, of `ids` if given; None when there is none."""
        terms = self.eligibility.terms()
        token = uuid4()
        options: ClaimOptions = {
            "workers": {token: self._worker},
            "queues": terms.queues,
            "max_attempts": terms.max_attempts,
            "ids": ids,
        }
        jobs = self.manager.claim([token], terms.leases, **options)
        return self._run(jobs[0], Claim(jobs[0].pk, token)) if jobs else None

    def _run(self, job: Job, claim: Claim) -> JobRun:
        self._error = None
        running = Running(job, claim)
        decision = self._execution.run(running)
        check_open(*connections.all(initialized_only=True))
        assert decision is not None  # Nobody else is there to end the attempt.
        decision, outcomes = settle_alone(self._settle, decision, running)
        outcome = outcomes.get(claim.token, SettleOutcome.WRITE_FAILED)
        settled = Settled(decision, outcome, running)
        log_settled(settled)
        conclude(settled, contained)
        attempt = decision.attempt.number
        run = JobRun(self._stored(claim, job), attempt, outcome, self._error)
        if is_of_the_test(run.error):
            run.raise_error()
        return run

    def _note(self, running: Running, ending: Ending) -> None:  # noqa: ARG002 (of the protocol)
        self._error = ending.error

    def _settle(self, decisions: Iterable[Decision]) -> Outcomes:
        try:
            with savepoint(self.manager.write_alias):
                return self.manager.settle(decisions)
        except Exception as error:
            self._error = error
            raise

    def _stored(self, claim: Claim, job: Job) -> Job:
        """Return the row, or what the handler had of it when it is gone."""
        return self.manager.on_write_alias().filter(pk=claim.job_id).first() or job


def is_of_the_test(error: BaseException | None) -> bool:
    """Whether an exception is none of the handler's: Ctrl-C, or pytest's own ways out."""
    return error is not None and not isinstance(error, Exception | SystemExit)


def run_job(
    job: Job | UUID | ResultLike | Named,
    payload: Mapping[str, Any] | None = None,
    *,
    raise_errors: bool = True,
    **options: Unpack[EnqueueOptions],
) -> JobRun:
    """Run one attempt of one job, as a worker would, and return what became of it.

    `job`: a job, its id, or the result of a task; or a type, its handler or a task, to enqueue a
    job with `payload` and `options`, those of `enqueue`, and run that. A job that is scheduled, for
    a retry too, is run at its time: the queue's clock stands there for so long.

    `raise_errors`: raise what the handler raises, once the row says what became of it. Without,
    look at the answer's `outcome` and `error`.

    No time limit is enforced, and a closed gate of a provider does not hold the job back. Raises
    NotRunnable for a job that no worker would run, HandlerNotFound for an unknown type.
    """
    if isinstance(job, str | JobHandler | TaskLike):
        asked = enqueue(job, payload, options)
    elif payload is not None or options:
        raise TypeError(
            "run_job() takes a payload and options with a type, a handler or a task only."
        )
    else:
        asked = stored(job)
    check_handler(asked.type)
    with at_its_time(asked):
        bench = Bench([asked.type])
        bench.manager.promote(jobs=asked)
        run = bench.run_next([asked.pk])
    if run is None:
        raise NotRunnable(f"Job {asked.pk} ({asked.type}) cannot run: {obstacle(asked)}.")
    if raise_errors:
        run.raise_error()
    return run


async def arun_job(
    job: Job | UUID | ResultLike | Named,
    payload: Mapping[str, Any] | None = None,
    *,
    raise_errors: bool = True,
    **options: Unpack[EnqueueOptions],
) -> JobRun:
    """Do what `run_job` does, from an async test."""
    return await sync_to_async(run_job)(job, payload, raise_errors=raise_errors, **options)


def enqueue(job: Named, payload: Mapping[str, Any] | None, options: EnqueueOptions) -> Job:
    """Enqueue a job to run; NotRunnable if another active one has its dedup key."""
    job_type = type_of(job)
    check_handler(job_type)
    newest = uuid7()
    made = Job.objects.enqueue(job_type, payload, **options)
    if made.pk < newest:
        raise NotRunnable(
            f"No job was made: the active job {made.pk} has the dedup key {made.dedup_key!r}. "
            "Run that one, or pass skip_dedup=True."
        )
    return made


def at_its_time(job: Job) -> AbstractContextManager[None]:
    """Let the clock stand where a scheduled job is due, if that is yet to come."""
    moment = job.scheduled_for
    return standing_at(moment) if moment and moment > Job.objects.now() else nullcontext()


def check_handler(job_type: str) -> None:
    """Raise HandlerNotFound for a type that this process cannot run."""
    if registry.get(job_type) is None:
        known = ", ".join(registry.types()) or "none"
        raise HandlerNotFound(f"No handler is registered for {job_type!r}; known are: {known}.")


def stored(job: Job | UUID | ResultLike) -> Job:
    """Return the row of a job; NotRunnable when there is none."""
    job_id = id_of(job)
    found = Job.objects.on_write_alias().filter(pk=job_id).first()
    if found is None:
        raise NotRunnable(f"There is no job {job_id}.")
    return found


def obstacle(job: Job) -> str:
    """Say why a job was not claimed."""
    now = stored(job)
    if now.status != JobStatus.PENDING:
        return f"it is {now.status}"
    if not Job.objects.on_write_alias().filter(pk=now.pk).not_paused().exists():
        return f"its queue {now.queue!r} or its type is paused"
    return "another connection holds its row"
