"""How much memory this process uses, and when that is too much."""

import resource
import sys
from collections.abc import Callable
from pathlib import Path

from ..logs import get_logger

logger = get_logger(__name__)

CHECK_SECONDS = 5.0
MIB = 1024 * 1024
STATM = Path("/proc/self/statm")


def resident_mib() -> float:
    """Return the resident memory of this process in MiB.

    Where the system does not tell (no /proc), the most it ever was.
    """
    try:
        pages = int(STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / MIB if sys.platform == "darwin" else peak / 1024
    return pages * resource.getpagesize() / MIB


class MemoryLimit:
    """A chore that says once when the process has grown beyond a limit in MiB.

    A process that is above it from the start would be replaced for ever: it warns, and works on.
    """

    def __init__(self, limit_mib: int, on_overgrown: Callable[[], None]) -> None:
        self._limit = limit_mib
        self._on_overgrown = on_overgrown
        self._starts_with = resident_mib()  # Before the first job.

    def __call__(self) -> float:
        """Look at the memory; come again in five seconds, or never."""
        used = resident_mib()
        if used <= self._limit:
            return CHECK_SECONDS
        if self._starts_with > self._limit:
            logger.warning(
                "The worker starts with %.0f MiB of memory, above its limit of %d MiB; the limit "
                "is ignored",
                self._starts_with,
                self._limit,
            )
        else:
            logger.info("The worker uses %.0f MiB of memory, limit %d MiB", used, self._limit)
            self._on_overgrown()
        return float("inf")

    def __str__(self) -> str:
        return "The look at the memory"
