"""The gates of one process: a provider that asked us to wait is left alone for that long.

A provider is any key that handlers share (`JobHandler.provider`). Its gate is open until
somebody trips it, and opens again by itself. Nothing here blocks: whoever wants to call a
provider asks first, and does something else while the gate is closed.
"""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

OPEN = timedelta(0)


class Gate(NamedTuple):
    """A closed gate: until when, by the throttle's clock, and which trip was the last."""

    opens_at: float
    trip: int


class Throttle:
    """Thread-safe gates by provider key. Open gates cost nothing: only closed ones are kept.

    `clock` gives monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._gates: dict[str, Gate] = {}
        self._last_trip = 0

    def ticket(self) -> int:
        """Return what a job keeps from its start, so that `clear` can tell what came later."""
        return self._last_trip

    def trip(self, provider: str | None, wait: timedelta) -> None:
        """Close the gate for `wait` from now. Extends, never shortens; without a key, nothing."""
        if provider is None:
            return
        with self._lock:
            self._last_trip += 1
            now = self._clock()
            gate = self._gates.get(provider)
            opens_at = max(now + wait.total_seconds(), gate.opens_at if gate else now)
            if opens_at > now:
                self._gates[provider] = Gate(opens_at, self._last_trip)

    def clear(self, provider: str | None, ticket: int) -> bool:
        """Open the gate, because a job of the provider succeeded; True if that opened it.

        `ticket` is from the start of that job. A job that started before the last trip proves
        nothing: the provider may have served it before it asked us to wait. So only a job that
        started later opens the gate.
        """
        if provider is None or not self._gates:
            return False
        with self._lock:
            gate = self._gates.get(provider)
            if gate is None or gate.trip > ticket:
                return False
            del self._gates[provider]
            return gate.opens_at > self._clock()

    def wait_left(self, provider: str | None) -> timedelta:
        """Return for how long the gate stays closed; zero when it is open."""
        if provider is None or not self._gates:
            return OPEN
        gate = self._closed_gates().get(provider)
        seconds = gate.opens_at - self._clock() if gate else 0.0
        return max(timedelta(seconds=seconds), OPEN)

    def closed(self) -> frozenset[str]:
        """Return the providers whose gates are closed now."""
        return frozenset(self._closed_gates()) if self._gates else frozenset()

    def next_opening(self) -> float | None:
        """Return in how many seconds the first closed gate opens; None when all are open."""
        gates = self._closed_gates() if self._gates else {}
        if not gates:
            return None
        return max(min(gate.opens_at for gate in gates.values()) - self._clock(), 0.0)

    def _closed_gates(self) -> dict[str, Gate]:
        """Forget the gates that opened by themselves, and return a copy of the others."""
        with self._lock:
            now = self._clock()
            self._gates = {key: gate for key, gate in self._gates.items() if gate.opens_at > now}
            return dict(self._gates)
