"""`--health-file`: the main thread shows that the worker is alive, for as long as it is.

Nothing here asks the database. A worker whose database is away is alive: it waits, and a restart
would only lose what it runs.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import healthfile
from ..logs import get_logger

if TYPE_CHECKING:
    from .pool import Pool

logger = get_logger(__name__)

INTERVAL_SECONDS = 5.0

STALLED_SECONDS = 120.0
"""A loop that did not turn for so long hangs: connecting to a silent host takes 30 s at most."""


class Vitals:
    """Writes the health file of one worker process every five seconds, while all of it lives.

    That is: no thread has died, the exchange and the housekeeping turn, and whoever calls `beat`,
    the main thread, is not stuck either. `path` None writes nothing.
    """

    def __init__(self, path: str | None, pool: "Pool") -> None:
        self._path = path
        self._pool = pool
        self._next_at = 0.0
        self._told: str | None = None

    def beat(self) -> None:
        """Write the file when its time has come. Called about once a second; never raises."""
        now = time.monotonic()
        if self._path is None or now < self._next_at:
            return
        self._next_at = now + INTERVAL_SECONDS
        trouble = self._trouble() or trouble_writing(self._path)
        if trouble != self._told:
            tell(self._path, trouble)
        self._told = trouble

    def end(self) -> None:
        """Remove the file: this worker is done."""
        if self._path is not None:
            healthfile.remove(self._path)

    def _trouble(self) -> str | None:
        if died := self._pool.died():
            return f"threads died: {', '.join(died)}"
        if stalled := self._pool.stalled(STALLED_SECONDS):
            return f"no turn in {STALLED_SECONDS:g} s: {', '.join(stalled)}"
        return None


@dataclass(frozen=True, slots=True)
class ChildSign:
    """Where a living child writes its file, and its process id."""

    path: str
    pid: int


class SupervisedVitals:
    """Writes the file of a supervisor while the file of every child is fresh.

    A child writes `PATH.1` and so on. One that just started has a while to write its first.
    """

    PATIENCE_SECONDS = 4 * INTERVAL_SECONDS

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._next_at = 0.0

    def file_of(self, number: int) -> str | None:
        """Return the path of the file of a child's place."""
        return None if self._path is None else f"{self._path}.{number}"

    def beat(self, children: Iterable[ChildSign | None]) -> None:
        """Write the file when its time has come; None stands for a child that is not there."""
        now = time.monotonic()
        if self._path is None or now < self._next_at:
            return
        if all(child is not None and self._is_fresh(child) for child in children):
            self._next_at = now + INTERVAL_SECONDS
            tell(self._path, trouble_writing(self._path))

    def end(self, places: int) -> None:
        """Remove the file, and what killed children left."""
        if self._path is not None:
            for number in range(1, places + 1):
                healthfile.remove(f"{self._path}.{number}")
            healthfile.remove(self._path)

    def _is_fresh(self, child: ChildSign) -> bool:
        try:
            sign = healthfile.read(child.path)
        except OSError:
            return False
        return sign is not None and sign.pid == child.pid and sign.age < self.PATIENCE_SECONDS


def tell(path: str, trouble: str | None) -> None:
    """Log why a health file is not written, if it is not."""
    if trouble is not None:
        logger.error("The health file %s is not written: %s", path, trouble)


def trouble_writing(path: str) -> str | None:
    """Write a health file; return what went wrong, if anything did."""
    try:
        healthfile.write(path)
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return None
