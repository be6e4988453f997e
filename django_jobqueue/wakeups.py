"""Hints that work arrived. They shorten a wait and are never the truth.

An enqueue announces its jobs after the commit: to the pools of this process by a call, and on
PostgreSQL to every other process by NOTIFY. A hint may be lost and may come twice; workers look
by themselves every POLL_INTERVAL.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .conf import settings
from .logs import get_logger

logger = get_logger(__name__)

CHANNEL = "django_jobqueue"
"""The PostgreSQL channel of all wake-ups; channels belong to one database."""

MAX_PAYLOAD_BYTES = 7_999
"""The longest payload that PostgreSQL takes."""

# NOTIFY takes a lock of the whole database at commit. Whoever holds it for long must not make
# an enqueue wait, so the wait is short; a hint that is given up costs one POLL_INTERVAL.
SEND = """
SELECT pg_notify(%s, payload)
FROM set_config('lock_timeout', '200ms', true), unnest(%s::text[]) AS payload
"""


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


@dataclass(frozen=True, slots=True)
class WakeUp:
    """What arrived in one queue.

    `queue`: None for any. `types`: None for any. `ready`: whether some of it may run now.
    `due_in`: in how many seconds the first scheduled job is due; None when none is scheduled.
    """

    queue: str | None = None
    types: frozenset[str] | None = None
    ready: bool = True
    due_in: float | None = None

    def merged(self, other: "WakeUp") -> "WakeUp":
        """Return one wake-up for two of the same queue."""
        both = None if self.types is None or other.types is None else self.types | other.types
        dues = [due for due in (self.due_in, other.due_in) if due is not None]
        return WakeUp(self.queue, both, self.ready or other.ready, min(dues, default=None))

    def encode(self) -> str:
        """Return the text that `decode` reads; too many types to fit become any type."""
        types = None if self.types is None else sorted(self.types)
        content = {"queue": self.queue, "types": types, "ready": self.ready, "in": self.due_in}
        text = compact(content)
        return (
            text if len(text.encode()) <= MAX_PAYLOAD_BYTES else compact(content | {"types": None})
        )


def compact(content: dict[str, Any]) -> str:
    """Return short JSON text."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def decode(payload: str) -> WakeUp | None:
    """Return the wake-up of a message, or None for a message that is none of ours."""
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    queue, types = content.get("queue", 0), content.get("types", 0)
    ready, due_in = content.get("ready"), content.get("in", False)
    if (
        not isinstance(queue, str | None)
        or not is_types(types)
        or not isinstance(ready, bool)
        or not is_seconds(due_in)
    ):
        return None
    return WakeUp(queue, None if types is None else frozenset(types), ready, due_in)


def is_types(value: Any) -> bool:
    """Whether a message's part can be a list of types, or any type."""
    if value is None:
        return True
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def is_seconds(value: Any) -> bool:
    """Whether a message's part can be a number of seconds, or none."""
    if value is None:
        return True
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


Receiver = Callable[[WakeUp], None]

_receivers: list[Receiver] = []


def subscribe(receiver: Receiver) -> None:
    """Have `receiver` called for whatever this process enqueues."""
    _receivers.append(receiver)


def unsubscribe(receiver: Receiver) -> None:
    """Undo `subscribe`; twice is harmless."""
    if receiver in _receivers:
        _receivers.remove(receiver)


def announce(using: str, wake_ups: Iterable[WakeUp]) -> None:
    """Pass the wake-ups on once the transaction of this alias commits, or at once outside one.

    Those of one transaction and queue become one. A rollback, of a savepoint too, drops what was
    announced inside it. Never raises: a hint must not cost an enqueue.
    """
    try:
        connection = connections[using]
        if not (connection.in_atomic_block or connection.get_autocommit()):
            return  # Nobody tells us when a transaction without `atomic` ends.
        latest = latest_announcement(connection)
        announcement = latest or Announcement(connection)
        announcement.add(wake_ups)
        if latest is None:
            transaction.on_commit(announcement.deliver, using, robust=True)
    except Exception:
        logger.warning("New jobs could not be announced; workers find them late", exc_info=True)


_announcements: WeakKeyDictionary[BaseDatabaseWrapper, WeakSet["Announcement"]] = (
    WeakKeyDictionary()
)
"""What each connection has to deliver. Only Django's list of callbacks keeps an announcement
alive, so one that a rollback discarded is gone from here too."""


class Announcement:
    """What a transaction, or one savepoint of it, has to say after the commit."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self.news: dict[str | None, WakeUp] = {}
        _announcements.setdefault(connection, WeakSet()).add(self)

    def add(self, wake_ups: Iterable[WakeUp]) -> None:
        """Note the wake-ups, with their due times on the monotonic clock until delivery."""
        now = time.monotonic()
        for wake_up in wake_ups:
            note(self.news, shifted(wake_up, now))

    def deliver(self) -> None:
        """Speak for all announcements of the transaction; the first of them does. Never raises."""
        ours = _announcements.get(self._connection, WeakSet())
        if self not in ours:
            return
        del _announcements[self._connection]
        news: dict[str | None, WakeUp] = {}
        for announcement in ours:
            for wake_up in announcement.news.values():
                note(news, wake_up)
        now = time.monotonic()
        pass_on(self._connection, [shifted(wake_up, -now) for wake_up in news.values()])


def latest_announcement(connection: BaseDatabaseWrapper) -> Announcement | None:
    """Return the announcement whose callback is the last one registered, at this very savepoint."""
    if connection.run_on_commit:
        savepoints, callback, *_ = connection.run_on_commit[-1]
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, Announcement) and savepoints == set(connection.savepoint_ids):
            return owner
    return None


def note(news: dict[str | None, WakeUp], wake_up: WakeUp) -> None:
    """Add a wake-up to those of its queue."""
    known = news.get(wake_up.queue)
    news[wake_up.queue] = known.merged(wake_up) if known else wake_up


def shifted(wake_up: WakeUp, seconds: float) -> WakeUp:
    """Return the wake-up with its due time moved, not before 0."""
    if wake_up.due_in is None:
        return wake_up
    return replace(wake_up, due_in=max(wake_up.due_in + seconds, 0.0))


def pass_on(connection: BaseDatabaseWrapper, wake_ups: list[WakeUp]) -> None:
    """Hand wake-ups to the pools of this process and to the listeners of others. Never raises."""
    for receiver in tuple(_receivers):
        for wake_up in wake_ups:
            call(receiver, wake_up)
    try:
        if connection.vendor == "postgresql" and settings.NOTIFY:
            notify(connection, [wake_up.encode() for wake_up in wake_ups])
    except Exception:
        logger.warning("Workers could not be woken; they find the jobs late", exc_info=True)


def notify(connection: BaseDatabaseWrapper, payloads: list[str]) -> None:
    """Send notifications, in autocommit.

    Through the driver itself: this is no query of the site's, and belongs neither in its query
    counts nor in its execute wrappers.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(SEND, [CHANNEL, payloads])


def call(receiver: Receiver, wake_up: WakeUp) -> None:
    """Call a receiver of this process; log what it raises."""
    try:
        receiver(wake_up)
    except Exception:
        logger.exception("A pool could not take a wake-up; it finds the jobs late")
