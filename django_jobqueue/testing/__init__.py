"""What a site's tests need: run a job, drain the queue, look at what was enqueued, move the clock.

Everything works inside the transaction of a `TestCase`, on the connection of the test, without a
thread. Nothing here is for production.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asserting import (
        assert_enqueued,
        assert_not_enqueued,
        capture_enqueued,
        enqueued,
    )
    from .clock import FakeClock, fake_clock
    from .draining import Drained, EndlessDrain, adrain, drain
    from .running import JobRun, NotRunnable, arun_job, run_job
    from .upkeep import reap, run_schedules

__all__ = [
    "Drained",
    "EndlessDrain",
    "FakeClock",
    "JobRun",
    "NotRunnable",
    "adrain",
    "arun_job",
    "assert_enqueued",
    "assert_not_enqueued",
    "capture_enqueued",
    "drain",
    "enqueued",
    "fake_clock",
    "reap",
    "run_job",
    "run_schedules",
]

_HOMES = {
    "Drained": "draining",
    "EndlessDrain": "draining",
    "FakeClock": "clock",
    "JobRun": "running",
    "NotRunnable": "running",
    "adrain": "draining",
    "arun_job": "running",
    "assert_enqueued": "asserting",
    "assert_not_enqueued": "asserting",
    "capture_enqueued": "asserting",
    "drain": "draining",
    "enqueued": "asserting",
    "fake_clock": "clock",
    "reap": "upkeep",
    "run_job": "running",
    "run_schedules": "upkeep",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: pytest loads plugins before Django is set up."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
