"""OpenTelemetry metrics: what workers do and what is enqueued, by type and queue.

Only the API is used. Without an SDK every call here ends in a proxy that does nothing; with one,
each worker process measures for itself, and the reader adds the processes up. The core calls these
functions at its few events; nothing here raises.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, Protocol

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from . import __version__
from .logs import get_logger

logger = get_logger(__name__)

SYSTEM = "django_jobqueue"

MOST_SERIES = 1_000
"""More combinations of type, queue and outcome than these are counted together, as "other"."""

OTHER = "other"

JOB_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
STATEMENT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)

Parameters = ParamSpec("Parameters")

meter = metrics.get_meter(SYSTEM, __version__)


def _histogram(name: str, description: str, bounds: tuple[float, ...]) -> metrics.Histogram:
    """Return a histogram of seconds; older APIs know no advice on its buckets."""
    key = "explicit_bucket_boundaries_advisory"
    known = key in inspect.signature(Meter.create_histogram).parameters
    advice: dict[str, Any] = {key: bounds} if known else {}
    return meter.create_histogram(name, unit="s", description=description, **advice)


SENT = meter.create_counter(
    "messaging.client.sent.messages", unit="{message}", description="Jobs enqueued and committed."
)
STARTED = meter.create_counter(
    "messaging.client.consumed.messages", unit="{message}", description="Attempts started."
)
SETTLED = meter.create_counter(
    "jobqueue.attempts.settled", unit="{attempt}", description="Attempts ended, by outcome."
)
DURATION = _histogram(
    "messaging.process.duration", "From the start of a handler to its end.", JOB_SECONDS
)
WAIT = _histogram("jobqueue.job.wait", "From when a job was ready to its start.", JOB_SECONDS)
LOST = meter.create_counter(
    "jobqueue.claims.lost", unit="{claim}", description="Claims that another worker may run."
)
ROUND_TRIP = _histogram(
    "jobqueue.exchange.duration", "One round trip that claims, settles or both.", STATEMENT_SECONDS
)


class Watched(Protocol):
    """A pool, as its gauges see it."""

    concurrency: int

    @property
    def busy(self) -> int:
        """How many attempts run."""

    @property
    def abandoned(self) -> int:
        """How many handlers run on whose attempt was ended from outside."""


def _never_raising(step: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Have a metric that fails cost its number only: an SDK's views and readers are the site's."""

    @wraps(step)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            step(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (logged there)
            _complain(error)

    return guarded


_complained: list[bool] = []


def _complain(error: Exception) -> None:
    if not _complained:
        _complained.append(True)
        logger.warning("Metrics failed; going on, and saying so once", exc_info=error)


# Events


def is_on() -> bool:
    """Whether anything but the API's own proxy receives the numbers."""
    try:
        provider = metrics.get_meter_provider()
    except Exception as error:  # noqa: BLE001 (one named in the environment that cannot be made)
        _complain(error)
        return False
    return not type(provider).__module__.startswith("opentelemetry.metrics")


@_never_raising
def sent(counts: Counter[tuple[str, str]]) -> None:
    """Count jobs that were enqueued and committed, by type and queue."""
    for (job_type, queue), count in counts.items():
        SENT.add(count, _series(job_type, queue))


@_never_raising
def started(job_type: str, queue: str, waited_seconds: float | None) -> None:
    """Count an attempt whose handler begins, and how long its job had been ready."""
    series = _series(job_type, queue)
    STARTED.add(1, series)
    if waited_seconds is not None:
        WAIT.record(max(waited_seconds, 0.0), series)


@_never_raising
def settled(job_type: str, queue: str, outcome: str, seconds: float | None) -> None:
    """Count an attempt that ended, and how long its handler ran; None when it never began."""
    series = _series(job_type, queue, outcome)
    SETTLED.add(1, series)
    if seconds is not None:
        DURATION.record(seconds, series)


@_never_raising
def claim_lost(job_type: str, queue: str) -> None:
    """Count a claim that was taken from this process."""
    LOST.add(1, _series(job_type, queue))


@_never_raising
def exchanged(operation: str, seconds: float) -> None:
    """Record a round trip of the exchange: `claim`, `settle` or `settle_and_claim`."""
    ROUND_TRIP.record(seconds, {"messaging.system": SYSTEM, "jobqueue.operation": operation})


# Series

_known: dict[tuple[str, str, str | None], dict[str, str]] = {}


def _series(job_type: str, queue: str, outcome: str | None = None) -> dict[str, str]:
    """Return the attributes of a measurement: few, and never a tenant or an id."""
    key = (job_type, queue, outcome)
    if (known := _known.get(key)) is not None:
        return known
    if len(_known) >= MOST_SERIES:
        return _attributes(OTHER, OTHER, outcome)
    _known[key] = _attributes(job_type, queue, outcome)
    return _known[key]


def _attributes(job_type: str, queue: str, outcome: str | None) -> dict[str, str]:
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": queue,
        "job.type": job_type,
    }
    return attributes if outcome is None else attributes | {"job.outcome": outcome}


# Gauges, of all pools of this process

_pools: list[Watched] = []


def watch(pool: Watched) -> None:
    """Let the gauges include a pool that starts."""
    _pools.append(pool)


def unwatch(pool: Watched) -> None:
    """Let them forget it; twice is harmless."""
    if pool in _pools:
        _pools.remove(pool)


def _gauge(name: str, unit: str, description: str, read: Callable[[Watched], int]) -> None:
    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        pools = list(_pools)
        if pools:  # A web process has no slots, and says nothing.
            yield Observation(sum(map(read, pools)), {"messaging.system": SYSTEM})

    meter.create_observable_up_down_counter(name, [observe], unit=unit, description=description)


_gauge("jobqueue.slots.total", "{slot}", "Slots of the worker.", lambda p: max(p.concurrency, 0))
_gauge("jobqueue.slots.busy", "{slot}", "Slots that run a job.", lambda p: p.busy)
_gauge(
    "jobqueue.handlers.abandoned",
    "{handler}",
    "Handlers that run on though their attempt was ended.",
    lambda p: p.abandoned,
)
