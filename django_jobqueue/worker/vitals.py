"""`--health-file`: the main thread shows that the worker is alive, for as long as it is.

Nothing here asks the database. A worker whose database is away is alive: it waits, and a restart
would only lose what it runs.
"""

import os
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


class OwnFile:
    """The health file of this process, which no other should write."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._written = False
        self._warned = False

    def write(self) -> str | None:
        """Write the file; return what went wrong, if anything did."""
        try:
            self._look_for_others()
            healthfile.write(self.path)
        except OSError as error:  # Without the draft's name, which is another every time.
            return f"{type(error).__name__}: {error.strerror or error}"
        self._written = True
        return None

    def remove(self) -> None:
        """Remove the file, unless another process wrote it last."""
        healthfile.remove(self.path, os.getpid())

    def _look_for_others(self) -> None:
        # Before the first time it may be what a killed worker left.
        if not self._written or self._warned:
            return
        sign = healthfile.read(self.path)
        if sign is not None and sign.pid != os.getpid():
            self._warned = True
            logger.warning(
                "The health file %s is written by the process %s too: each worker needs its own",
                self.path,
                sign.pid,
            )


class Vitals:
    """Writes the health file of one worker process every five seconds, while all of it lives.

    That is: no thread has died, the exchange and the housekeeping turn, and whoever calls `beat`,
    the main thread, is not stuck either. `path` None writes nothing.
    """

    def __init__(self, path: str | None, pool: "Pool") -> None:
        self._file = None if path is None else OwnFile(path)
        self._pool = pool
        self._next_at = 0.0
        self._told: str | None = None

    def beat(self) -> None:
        """Write the file when its time has come. Called about once a second; never raises."""
        now = time.monotonic()
        if self._file is None or now < self._next_at:
            return
        self._next_at = now + INTERVAL_SECONDS
        trouble = self._trouble() or self._file.write()
        if trouble != self._told:
            tell(self._file.path, trouble)
        self._told = trouble

    def end(self) -> None:
        """Remove the file: this worker is done."""
        if self._file is not None:
            self._file.remove()

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
        self._file = None if path is None else OwnFile(path)
        self._next_at = 0.0

    def file_of(self, number: int) -> str | None:
        """Return the path of the file of a child's place."""
        return None if self._file is None else f"{self._file.path}.{number}"

    def clear_up(self, child: ChildSign) -> None:
        """Remove what a child that was killed left behind."""
        healthfile.remove(child.path, child.pid)

    def beat(self, children: Iterable[ChildSign | None]) -> None:
        """Write the file when its time has come; None stands for a child that is not there."""
        now = time.monotonic()
        if self._file is None or now < self._next_at:
            return
        if all(child is not None and self._is_fresh(child) for child in children):
            self._next_at = now + INTERVAL_SECONDS
            tell(self._file.path, self._file.write())

    def end(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.remove()

    def _is_fresh(self, child: ChildSign) -> bool:
        try:
            sign = healthfile.read(child.path)
        except OSError:
            return False
        if sign is None or sign.pid != child.pid:
            return False
        return sign.is_fresh(self.PATIENCE_SECONDS)


def tell(path: str, trouble: str | None) -> None:
    """Log why a health file is not written, if it is not."""
    if trouble is not None:
        logger.error("The health file %s is not written: %s", path, trouble)
