"""The probes by name, and what they are held against."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..conf import settings
from .live import live
from .queue import queue
from .ready import ready
from .report import Report


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the probes need to know; durations in seconds."""

    health_file: str | None
    max_age: float
    max_overdue: float
    max_stuck: int
    max_failing: float

    @classmethod
    def from_settings(cls) -> "Thresholds":
        """Return those of the site; raises InvalidSettings for a value that cannot be used."""
        return cls(
            settings.HEALTH_FILE,
            settings.HEALTH_MAX_AGE,
            settings.HEALTH_MAX_OVERDUE,
            settings.HEALTH_MAX_STUCK,
            settings.HEALTH_MAX_FAILING,
        )


PROBES: Mapping[str, Callable[[Thresholds, str | None], Report]] = {
    "live": lambda limits, _using: live(limits.health_file, limits.max_age),
    "ready": lambda _limits, using: ready(using=using),
    "queue": lambda limits, using: queue(
        max_overdue=limits.max_overdue,
        max_stuck=limits.max_stuck,
        max_failing=limits.max_failing,
        using=using,
    ),
}
"""Each takes the thresholds and the alias of the jobs, None for where they are written."""
