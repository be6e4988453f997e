"""Hints that work arrived. They shorten a wait and are never the truth."""

import threading


class Bell:
    """Wakes idle slots. A ring between `ticket` and `wait` is not lost: the wait ends at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rings = 0

    def ticket(self) -> int:
        """Return the number of rings so far, to be taken before one looks for work."""
        return self._rings

    def ring(self) -> None:
        """Wake everyone who waits."""
        with self._changed:
            self._rings += 1
            self._changed.notify_all()

    def wait(self, ticket: int, seconds: float) -> bool:
        """Wait for a ring after `ticket`, at most `seconds`; return whether there was one."""
        with self._changed:
            return self._changed.wait_for(lambda: self._rings != ticket, timeout=seconds)
