"""The listener: turns the database's notifications into wake-ups for this process.

It never decides anything. While it cannot listen, idle slots look every POLL_INTERVAL; as soon
as it listens again it has them look once, since it may have missed something.
"""

import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

from django.db import Error as DatabaseFailure
from django.db import NotSupportedError, OperationalError, connections

from .. import registry
from ..logs import get_logger
from ..wakeups import CHANNEL, Bell, Receiver, WakeUp, call, decode
from .eligibility import Eligibility
from .loops import FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS, Loop
from .queue_connection import forget_connection, queue_connection

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

logger = get_logger(__name__)

QUIET_SECONDS = 15.0
"""After this long without a word the server is asked whether it is still there."""

ANSWER_SECONDS = 5.0

RETRY_SECONDS = 300.0
"""When to try again where listening does not work."""

OFF_SECONDS = 1.0
"""How often to ask whether listening is wanted again."""


class CannotListen(Exception):
    """Notifications do not arrive over this connection; the text says why."""


class Reception:
    """What a pool does with a wake-up, whether it comes from its own process or from another."""

    def __init__(
        self, bell: Bell, eligibility: Eligibility, on_scheduled: Callable[[float], None]
    ) -> None:
        self._bell = bell
        self._eligibility = eligibility
        self._on_scheduled = on_scheduled

    def __call__(self, wake_up: WakeUp) -> None:
        """Wake the slots if they may take it; pass on when the next scheduled job is due.

        Any worker promotes any scheduled job, so its type and queue do not matter there.
        """
        if wake_up.due_in is not None:
            self._on_scheduled(wake_up.due_in)
        if wake_up.ready and self._takes(wake_up):
            self._bell.ring()

    def _takes(self, wake_up: WakeUp) -> bool:
        """Whether a slot could have use for it; a cheap look, which says yes when in doubt."""
        queues, types = self._eligibility.queues, self._eligibility.types
        if queues is not None and wake_up.queue is not None and wake_up.queue not in queues:
            return False
        if wake_up.types is None:
            return True
        known = registry.types() if types is None else types
        return not wake_up.types.isdisjoint(known)


class Listener(Loop):
    """Holds one connection that listens, for as long as it is wanted, and replaces a dead one.

    `receive` gets every wake-up of another process, and of this one. `look` is called when some
    may have been missed. `wanted` is asked now and then; while it says no, there is no
    connection. `quiet_seconds`: after how much silence the connection is tried.
    """

    def __init__(
        self,
        using: str,
        receive: Receiver,
        look: Callable[[], None],
        *,
        wanted: Callable[[], bool] = lambda: True,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        super().__init__("listener", threading.Event(), using=using)
        self.listening = threading.Event()
        """Set while notifications arrive."""
        self._alias = using
        self._receive = receive
        self._look = look
        self._wanted = wanted
        self._quiet_seconds = quiet_seconds
        self._probe = f"probe {uuid4()}"
        self._proven = False
        self._complained = False
        self._broken = False
        self._pause = FIRST_BACKOFF_SECONDS
        self._door: socket.socket | None = None

    def shut_down(self) -> None:
        """End the thread at once. Idempotent."""
        self.halt.set()
        door = self._door
        if door is not None:
            door.close()

    def step(self) -> bool:
        """Listen until the connection breaks or listening is not wanted, then pause."""
        if connections[self._alias].vendor != "postgresql":
            logger.info(
                "This database cannot wake workers: idle slots look every POLL_INTERVAL for "
                "jobs that other processes enqueue."
            )
            return False
        if not self._wanted():
            return not self.halt.wait(OFF_SECONDS)
        try:
            self._listen()
        except (CannotListen, NotSupportedError) as error:
            self._give_up(error)
        except DatabaseFailure as error:
            self._fail(error)
        finally:
            self.listening.clear()
            forget_connection(self._alias)
        return not self.halt.is_set()

    def ended(self) -> None:
        """Close the door."""
        self.shut_down()

    def _listen(self) -> None:
        connection = connections[self._alias]
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        inside, self._door = socket.socketpair()
        with (
            connection.wrap_database_errors,
            inside,
            self._door,
            selectors.DefaultSelector() as selector,
        ):
            ear = Ear(connection.connection.pgconn, selector, self._heard)
            selector.register(inside, selectors.EVENT_READ)
            if not self._proven:
                self._prove(ear)
            self._restored()
            while self._wanted() and not self.halt.is_set():
                if not ear.listen(self._quiet_seconds):
                    ear.ask()

    def _prove(self, ear: "Ear") -> None:
        """Raise CannotListen unless a notification that another connection sends arrives.

        A pooler in transaction mode accepts LISTEN, and then gives the session to others.
        """
        other = queue_connection(self._alias)
        try:
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, self._probe])
        finally:
            other.close()
        end = time.monotonic() + ANSWER_SECONDS
        while not (self._proven or self.halt.is_set()):
            if not ear.listen(end - time.monotonic()):
                raise CannotListen("a notification sent as a test did not arrive")

    def _heard(self, payload: str) -> None:
        if payload == self._probe:
            self._proven = True
        wake_up = decode(payload)
        if wake_up is not None:
            call(self._receive, wake_up)

    def _restored(self) -> None:
        if self._broken:
            logger.info("The listener is back")
        self._broken = False
        self._pause = FIRST_BACKOFF_SECONDS
        self.listening.set()
        self._look()

    def _fail(self, error: DatabaseFailure) -> None:
        if not (self._broken or self.halt.is_set()):
            logger.warning(
                "The listener lost its connection (%s); until it is back, idle slots look every "
                "POLL_INTERVAL",
                str(error).strip(),
            )
        self._broken = True
        self.halt.wait(self._pause)
        self._pause = min(self._pause * 2, LONGEST_BACKOFF_SECONDS)

    def _give_up(self, error: Exception) -> None:
        if not self._complained:
            logger.warning(
                "Notifications do not arrive over the database %r (%s). Behind a pooler in "
                "transaction mode this is normal. Idle slots look every POLL_INTERVAL instead.",
                self._alias,
                str(error).strip(),
            )
        self._complained = True
        self.halt.wait(RETRY_SECONDS)


class Ear:
    """One listening session, without ever waiting longer than said.

    It reads through libpq itself: psycopg's `notifies` waits without being interruptible, and
    its `execute` waits for ever for an answer over a connection that is silently cut.
    """

    def __init__(
        self, pgconn: "PGconn", selector: selectors.BaseSelector, heard: Callable[[str], None]
    ) -> None:
        self._pgconn = pgconn
        self._selector = selector
        self._heard = heard
        self._interrupted = False
        selector.register(pgconn.socket, selectors.EVENT_READ)

    def listen(self, seconds: float) -> bool:
        """Wait for a word, or for whatever else the selector watches; False when none came."""
        ready = {key.fd for key, _ in self._selector.select(max(seconds, 0.0))}
        if self._pgconn.socket in ready:
            self._pgconn.consume_input()
        while (notification := self._pgconn.notifies()) is not None:
            self._heard(notification.extra.decode(errors="replace"))
        self._interrupted = bool(ready - {self._pgconn.socket})
        return bool(ready)

    def ask(self) -> None:
        """Raise OperationalError when the server does not answer a question in time."""
        self._pgconn.send_query(b"SELECT 1")
        self._pgconn.flush()
        end = time.monotonic() + ANSWER_SECONDS
        while self._pgconn.is_busy() or self._pgconn.get_result() is not None:
            if self._pgconn.is_busy() and not self.listen(end - time.monotonic()):
                raise OperationalError(f"the server was silent for {ANSWER_SECONDS:g} s")
            if self._interrupted:
                return
