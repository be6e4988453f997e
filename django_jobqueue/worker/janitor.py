"""The janitor: removes the temporary files that killed handlers of this site left behind."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ..conf import temp_prefix
from ..logs import get_logger

logger = get_logger(__name__)

ROUND_SECONDS = 3600.0
OLD_SECONDS = 6 * 3600.0

ENTRIES_A_CALL = 5_000
NEXT_CALL_SECONDS = 0.5
"""A huge folder is gone through in pieces, since other small jobs wait for their turn."""


class Janitor:
    """Goes through the folder for temporary files at the start and then hourly.

    Only files go, by this site's prefix and six hours after their last change: never folders,
    and of a symbolic link the link and not what it points at. `enabled` is asked at each call.
    `folder`, `prefix` and `clock` (the time that files carry) are the system's and the site's.
    """

    def __init__(
        self,
        enabled: Callable[[], bool] = lambda: True,
        *,
        folder: Path | None = None,
        prefix: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._enabled = enabled
        self._folder = folder
        self._prefix = prefix
        self._clock = clock
        self._round: Iterator[os.DirEntry[str]] | None = None
        self._due_at = float("-inf")

    def __call__(self) -> float:
        """Look at the next entries; return when to come again. Never raises for a file."""
        early = self._due_at - time.monotonic()
        if early > 0:
            return early
        pause = ROUND_SECONDS
        if self._enabled():
            try:
                pause = self._go_on()
            except OSError:
                logger.warning("The folder for temporary files cannot be read", exc_info=True)
                self._round = None
        self._due_at = time.monotonic() + pause
        return pause

    def _go_on(self) -> float:
        if self._round is None:
            self._round = os.scandir(self._folder or tempfile.gettempdir())
        entries = list(islice(self._round, ENTRIES_A_CALL))
        prefix = self._prefix or temp_prefix()
        for entry in entries:
            if entry.name.startswith(prefix):
                self._tidy(entry)
        if len(entries) == ENTRIES_A_CALL:
            return NEXT_CALL_SECONDS
        self._round = None
        return ROUND_SECONDS

    def _tidy(self, entry: os.DirEntry[str]) -> None:
        try:
            if entry.is_dir(follow_symlinks=False):
                return
            changed_at = entry.stat(follow_symlinks=False).st_mtime
            if self._clock() - changed_at > OLD_SECONDS:
                Path(entry.path).unlink()
                logger.info("Removed the temporary file %s", entry.path)
        except FileNotFoundError:
            pass  # Another worker's janitor was faster.
        except OSError:
            logger.warning("The temporary file %s cannot be removed", entry.path, exc_info=True)

    def __str__(self) -> str:
        return "The janitor"
