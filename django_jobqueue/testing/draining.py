"""Run what is in the queue, and what that enqueues, until nothing is left."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from asgiref.sync import sync_to_async
from django.db.models import Min, Q

from ..exceptions import JobQueueError
from ..models import Job
from ..states import SettleOutcome
from .clock import standing_at
from .naming import Named, type_of
from .running import Bench, JobRun, check_handler

DRAIN_LIMIT = 1000

MOST_NAMED = 3

STARTED = Q(attempts__gt=0) | Q(rate_limit_hits__gt=0)
"""A scheduled job that ran before waits for its next attempt."""


class EndlessDrain(JobQueueError):
    """`drain` ran as many attempts as it may, and more wait: the message names the types."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain ran: one `JobRun` for each attempt, in the order in which they ran."""

    runs: tuple[JobRun, ...]

    @property
    def outcomes(self) -> Counter[SettleOutcome]:
        """How many attempts ended in which way."""
        return Counter(run.outcome for run in self.runs)

    @property
    def jobs(self) -> list[Job]:
        """The jobs that ran, each once, as its last attempt left it."""
        return list({run.job.pk: run.job for run in self.runs}.values())

    @property
    def errors(self) -> list[BaseException]:
        """What handlers raised, in order."""
        return [run.error for run in self.runs if run.error is not None]

    def __len__(self) -> int:
        """Return how many attempts ran."""
        return len(self.runs)

    def __iter__(self) -> Iterator[JobRun]:
        return iter(self.runs)


class DrainOptions(TypedDict, total=False):
    """The arguments of `drain`."""

    queues: Sequence[str] | None
    types: Collection[Named] | None
    limit: int
    with_retries: bool
    with_scheduled: bool
    raise_errors: bool


def drain(
    *,
    queues: Sequence[str] | None = None,
    types: Collection[Named] | None = None,
    limit: int = DRAIN_LIMIT,
    with_retries: bool = False,
    with_scheduled: bool = False,
    raise_errors: bool = True,
) -> Drained:
    """Run ready jobs in the order of claims, and those they enqueue, until none is left.

    `queues`, `types`: only these; None for all. `with_retries`, `with_scheduled`: wait for jobs
    that wait for their next attempt, or for their time, and run them: the queue's clock jumps to
    the time of the next, and is put back in the end. Whatever else is due by then runs too.

    `raise_errors`: raise the first exception of a handler, once its row says what became of it;
    the jobs behind it then still wait. Without, all run, and the answer holds the errors.

    Raises EndlessDrain after `limit` attempts when more wait, HandlerNotFound for an unknown type,
    ValueError for a limit under 1, TypeError for one name in the place of a list of names.
    """
    check_lists(queues=queues, types=types)
    check_number(limit)
    names = None if types is None else [type_of(job_type) for job_type in types]
    for name in names or ():
        check_handler(name)
    bench = Bench(names, queues)
    runs: list[JobRun] = []
    promote_due(bench)
    with ExitStack() as journey:
        while True:
            check_limit(bench, runs, limit)
            run = bench.run_next()
            if run is not None:
                runs.append(run)
                if raise_errors:
                    run.raise_error()
                continue
            if promote_due(bench):
                continue
            moment = next_moment(bench, retries=with_retries, scheduled=with_scheduled)
            if moment is None:
                return Drained(tuple(runs))
            journey.enter_context(standing_at(moment))


def check_lists(**options: object) -> None:
    """Refuse one name where a list of names belongs: its letters would be taken for names."""
    for option, given in options.items():
        if isinstance(given, str):
            raise TypeError(
                f"drain() got {option}={given!r}; expected a list of names. "
                f"Write {option}=[{given!r}]."
            )


def check_number(limit: object) -> None:
    """Refuse a limit that is no whole number of 1 or more."""
    if not isinstance(limit, int):
        raise TypeError(f"drain() got limit={limit!r}; expected a whole number, 1 or more.")
    if limit < 1:
        raise ValueError(
            f"drain() got limit={limit!r}; expected 1 or more. To run nothing, do not call it."
        )


async def adrain(**options: Unpack[DrainOptions]) -> Drained:
    """Do what `drain` does, with the same arguments, from an async test."""
    return await sync_to_async(drain)(**options)


def promote_due(bench: Bench) -> bool:
    """Make all jobs ready that are due; return whether there were any."""
    promoted = False
    while bench.manager.promote():
        promoted = True
    return promoted


def check_limit(bench: Bench, runs: Sequence[JobRun], limit: int) -> None:
    """Raise EndlessDrain when the limit is reached and there is more."""
    if len(runs) < limit:
        return
    terms = bench.eligibility.terms()
    jobs = bench.manager.on_write_alias().takeable(terms.leases, terms.queues)
    if jobs.exists():
        often = Counter(run.job.type for run in runs).most_common(MOST_NAMED)
        named = ", ".join(f"{name} ({count:,})" for name, count in often)
        raise EndlessDrain(
            f"drain() ran {len(runs):,} attempts and more jobs wait. Most were of {named}. A "
            "handler that enqueues its own type again never ends; pass a higher limit= if so "
            "many are meant."
        )


def next_moment(bench: Bench, *, retries: bool, scheduled: bool) -> datetime | None:
    """Return when the next job that is waited for can run; None when there is none."""
    now = bench.manager.now()
    wanted = (STARTED if retries else Q(pk=None)) | (~STARTED if scheduled else Q(pk=None))
    terms = bench.eligibility.terms(heed_throttle=False)
    jobs = bench.manager.on_write_alias().scheduled().not_paused().filter(wanted)
    jobs = jobs.filter(type__in=terms.leases)
    if terms.queues is not None:
        jobs = jobs.filter(queue__in=terms.queues)
    moments = [jobs.aggregate(first=Min("scheduled_for"))["first"]]
    opening = bench.throttle.next_opening() if retries else None
    if opening is not None:
        moments.append(now + timedelta(seconds=opening))
    # What is due and was not promoted is locked by another connection: no use to wait for it.
    return min((moment for moment in moments if moment and moment > now), default=None)
