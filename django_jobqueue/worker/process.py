"""One worker process from its options to its exit code."""

from collections.abc import Callable

from django.db import DatabaseError

from ..conf import settings
from ..states import SettleOutcome
from .control import Ended, Event, bounded, run_until_stopped
from .drain import leftovers
from .events import PoolEvent
from .options import ExitCode, WorkerOptions
from .pool import Pool
from .vitals import Vitals

Say = Callable[[str], None]


RECYCLED = frozenset({PoolEvent.EXHAUSTED, PoolEvent.OVERGROWN, PoolEvent.ABANDONED})


def make_pool(options: WorkerOptions) -> Pool:
    """Return the pool of a worker; raises InvalidSettings for a setting it cannot use."""
    return Pool(
        options.concurrency,
        types=options.types,
        queues=options.queues,
        mode=options.mode,
        using=options.database,
        drain=options.drain,
        max_jobs=options.max_jobs,
        max_memory=options.max_memory,
    )


def run_worker(pool: Pool, say: Say, *, health_file: str | None = None) -> Ended:
    """Run a pool until it is done or told to stop, and say so, a line at a time.

    `health_file`: the path of a file that is fresh while the worker is alive.
    """
    grace: float = settings.SHUTDOWN_GRACE
    vitals = Vitals(health_file, pool)
    try:
        ended = run_until_stopped(
            pool,
            grace,
            on_start=lambda: say(started(pool)),
            on_stop=lambda cause: say(stopping(pool, cause, grace)),
            on_look=vitals.beat,
        )
    finally:
        vitals.end()
    say(summary(pool, ended))
    if ended.cause is PoolEvent.DRAINED:
        say(left_over(pool))
    return ended


def exit_code(ended: Ended) -> ExitCode:
    """Return what a child tells its supervisor."""
    if ended.died:
        return ExitCode.FAILED
    return ExitCode.RECYCLE if ended.cause in RECYCLED else ExitCode.CLEAN


def started(pool: Pool) -> str:
    """Say what kind of worker began."""
    queues = pool.eligibility.queues
    types = pool.eligibility.terms(heed_throttle=False).leases
    return (
        f"Worker {pool.name} started: mode {pool.eligibility.mode}, "
        f"{max(pool.concurrency, 0)} slot{'' if pool.concurrency == 1 else 's'}, "
        f"{'all queues' if queues is None else 'queues ' + ', '.join(queues)}, "
        f"{len(types)} job types, database {pool.manager.write_alias}."
    )


def stopping(pool: Pool, cause: Event, grace: float) -> str:
    """Say that the worker waits for what runs, and for how long."""
    jobs = f"{pool.busy} running job{'' if pool.busy == 1 else 's'}"
    patience = f"up to {grace:g} s. Signal again to hand back now" if bounded(cause) else "no limit"
    return f"Worker {pool.name} stops ({cause.value}): {jobs}, {patience}."


def summary(pool: Pool, ended: Ended) -> str:
    """Say why the worker ended and what it did."""
    counts = {o.value: pool.outcomes[o] for o in SettleOutcome if pool.outcomes[o]}
    if ended.released:
        counts["handed back"] = ended.released
    done = ", ".join(f"{count} {what}" for what, count in counts.items()) or "no jobs"
    return f"Worker {pool.name} stopped ({ended.cause.value}): {done}."


def left_over(pool: Pool) -> str:
    """Say which active jobs a drained worker leaves, and why."""
    try:
        counts = leftovers(pool.manager, pool.eligibility)
    except DatabaseError as error:
        return f"Left: unknown, the database did not answer ({error})."
    if not counts:
        return "Left: nothing."
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return f"Left: {sum(counts.values())} ({reasons})."
