"""Where a claimer begins to look: a memory that saves work and never hides a job for good.

Ready jobs are found through one index, by priority and id. Its front may be long and useless:
jobs of types that this claimer does not run, or entries of finished jobs that an open snapshot
keeps. So a claimer remembers, for each priority level, the id below which it saw nothing to take,
and begins there. Jobs can become ready below that mark: by a transaction that committed late, a
retry, a producer whose clock is behind. So the marks are checked by a *look*, which finds the
first takeable job of every type and queue wherever it lies, and lowers the mark to it.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

LOWEST_ID = UUID(int=0)
LOWEST_PRIORITY = -(2**15)
ABOVE_EVERY_PRIORITY = 2**15

MOST_LEVELS = 16
"""So many priority levels are remembered; a forgotten one is searched from its beginning."""

LOOK_SHARE = 50
"""Looks may take one part in this many of a claimer's time."""

LOOK_SECONDS = 1.0
"""How often a busy claimer looks at most."""

LONGEST_PAUSE_SECONDS = 1.5
"""How long a busy claimer goes on without a look, whatever that costs."""

FRESH_SECONDS = 0.5
"""How long a new id may take to become visible, where others are already of the future."""


class Position(NamedTuple):
    """A place in the order in which jobs are claimed."""

    priority: int
    id: UUID


class Span(NamedTuple):
    """A part of that order: from a place up to the beginning of the level `until`."""

    priority: int
    id: UUID
    until: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look saw.

    `takeable`: the first job that may be taken, at each level where one was seen; the most urgent
    is first. `passed`: the last ready job at each level more urgent than that, where nothing may
    be taken. `now`: when that was, by the database's clock.
    """

    takeable: tuple[Position, ...] = ()
    passed: tuple[Position, ...] = ()
    now: datetime | None = None


Look = Callable[[Iterable[str], Sequence[str] | None, Iterable[int]], Sight]
"""Finds the first takeable jobs of types and queues (None: all), at these levels too."""


class Hints:
    """The marks of one claimer. Thread-safe.

    They hold for the types and queues that were asked for: asking for more forgets them all.
    """

    def __init__(self, marks: Mapping[int, UUID] | None = None) -> None:
        self._lock = threading.Lock()
        self._marks = dict(marks or {})
        self._wanted: tuple[frozenset[str], frozenset[str] | None] | None = None
        self._lowered = 0
        self._doubtful = bool(marks)
        self._looked_at = float("-inf")
        self._look_cost = 0.0

    def ask_for(self, types: Iterable[str], queues: Iterable[str] | None) -> int:
        """Note what is wanted; return a ticket to raise marks with, void once one is lowered."""
        wanted = frozenset(types), None if queues is None else frozenset(queues)
        with self._lock:
            known, self._wanted = self._wanted, wanted
            if known is not None and known != wanted and wants_more(known, wanted):
                self._forget()
            return self._lowered

    def spans(self) -> list[Span]:
        """Return where to search, in the order of claims."""
        with self._lock:
            marks = sorted(self._marks.items())
        ends = [level for level, _ in marks] + [ABOVE_EVERY_PRIORITY]
        spans = [Span(*mark, until) for mark, until in zip(marks, ends[1:], strict=True)]
        if ends[0] > LOWEST_PRIORITY:
            spans.insert(0, Span(LOWEST_PRIORITY, LOWEST_ID, ends[0]))
        return spans

    def levels(self) -> list[int]:
        """Return the levels that have a mark."""
        with self._lock:
            return sorted(self._marks)

    def advance(
        self, ticket: int, claimed: Iterable[Position], now: datetime | None = None
    ) -> None:
        """Raise the marks to jobs just claimed: what lies before them is taken, or foreign.

        `now`: when they were claimed, by the database's clock.
        """
        with self._lock:
            if ticket == self._lowered:
                self._doubtful |= self._raise(claimed, now)

    def lower(self, ready: Iterable[Position]) -> None:
        """Lower the marks to jobs that became ready."""
        with self._lock:
            self._lower(ready)
            self._lowered += 1  # Also where no mark is: a claim under way may raise one.

    def forget(self) -> None:
        """Search everything: jobs became ready, and it is not known where."""
        with self._lock:
            self._forget()

    def doubt(self) -> None:
        """Note that too little was found, and that there was no time to look."""
        self._doubtful = True

    def verify(self, types: Iterable[str], queues: Sequence[str] | None, look: Look) -> Sight:
        """Set the marks by a look, made now for these types and queues, and return what it saw."""
        ticket = self.ask_for(types, queues)
        started = time.monotonic()
        sight = look(types, queues, self.levels())
        self.saw(ticket, sight, time.monotonic() - started)
        return sight

    def saw(self, ticket: int, sight: Sight, seconds: float) -> None:
        """Set the marks by a look that took so many seconds; the ticket is from before it."""
        with self._lock:
            valid = ticket == self._lowered
            self._lower(sight.takeable)
            if valid:
                self._raise([*sight.passed, *sight.takeable[:1]], sight.now)
            self._doubtful = not valid
            self._looked_at, self._look_cost = time.monotonic(), seconds

    def look_paid_off(self) -> None:
        """Note that a look led to jobs, so that the next may follow at once."""
        self._look_cost = 0.0

    @property
    def any(self) -> bool:
        """Whether there is a mark: a search then begins past something."""
        return bool(self._marks)

    @property
    def look_is_due(self) -> bool:
        """Whether a busy claimer should look, since its marks may be too high."""
        pause = min(max(LOOK_SECONDS, LOOK_SHARE * self._look_cost), LONGEST_PAUSE_SECONDS)
        return self._doubtful and time.monotonic() - self._looked_at >= pause

    @property
    def may_look(self) -> bool:
        """Whether a claimer that found too little may look at once."""
        return time.monotonic() - self._looked_at >= LOOK_SHARE * self._look_cost

    def _raise(self, marks: Iterable[Position], now: datetime | None) -> bool:
        raised = False
        for level, last in marks:
            mark = not_in_future(last, now)
            if mark > self._marks.get(level, LOWEST_ID):
                self._marks.pop(level, None)  # The level used last comes last.
                self._marks[level] = mark
                raised = True
        for level in list(self._marks)[:-MOST_LEVELS]:
            del self._marks[level]
        return raised

    def _lower(self, ready: Iterable[Position]) -> None:
        for level, mark in ready:
            if mark < self._marks.get(level, LOWEST_ID):
                self._marks[level] = mark
                self._lowered += 1

    def _forget(self) -> None:
        self._marks.clear()
        self._lowered += 1


def not_in_future(mark: UUID, now: datetime | None) -> UUID:
    """Return the mark, or one just before now where it is an id of the future.

    A producer whose clock is ahead makes such ids. A mark there would lie above all that others
    enqueue until then.
    """
    if now is None or mark < first_id_at(now.timestamp()):
        return mark
    return first_id_at(now.timestamp() - FRESH_SECONDS)


def first_id_at(seconds: float) -> UUID:
    """Return the lowest UUIDv7 of a moment, in seconds since the epoch (RFC 9562, section 5.7)."""
    return UUID(int=int(seconds * 1000) << 80)


def wants_more(
    known: tuple[frozenset[str], frozenset[str] | None],
    wanted: tuple[frozenset[str], frozenset[str] | None],
) -> bool:
    """Whether there are jobs that were not wanted before and are now."""
    (types, queues), (wanted_types, wanted_queues) = known, wanted
    if not wanted_types <= types:
        return True
    return queues is not None and (wanted_queues is None or not wanted_queues <= queues)
