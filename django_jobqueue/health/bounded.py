"""Questions to the database that are answered in time, or not at all.

A probe must not hang with the database it asks about. So each question has a thread and a
connection of its own, which gives up soon; whoever asks waits no longer than that anyway.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from ..logs import get_logger
from ..worker.preflight import first_line
from ..worker.queue_connection import network_options

logger = get_logger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""How long an answer is waited for."""

CONNECT_SECONDS = 3.0
STATEMENT_MILLISECONDS = 4_000


class NoAnswer(Exception):
    """The database could not be asked, or did not answer in time; the text says why."""


def ask(using: str, question: Callable[[BaseDatabaseWrapper], T]) -> T:
    """Return what `question` returns, asked over a new connection to the alias `using`.

    The question runs in a transaction of its own in another thread, whose `connections[using]` is
    the new connection. Raises NoAnswer after five seconds at most.
    """
    answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((True, asked(using, question)))
        except BaseException as error:  # noqa: BLE001 (told to whoever asks)
            answers.put((False, error))
        finally:
            connections.close_all()

    threading.Thread(target=run, name="health", daemon=True).start()
    try:
        answered, answer = answers.get(timeout=ANSWER_SECONDS)
    except queue.Empty:
        raise NoAnswer(f"no answer within {ANSWER_SECONDS:g} s") from None
    if answered:
        return answer  # type: ignore[no-any-return]
    logger.debug("A question of a health probe failed", exc_info=answer)
    if isinstance(answer, DatabaseError):
        raise NoAnswer(first_line(answer)) from answer
    raise NoAnswer(f"{type(answer).__name__}: {first_line(answer)}") from answer


def asked(using: str, question: Callable[[BaseDatabaseWrapper], T]) -> T:
    """Ask over a new connection of this thread."""
    connection = impatient_connection(using)
    connections[using] = connection
    with transaction.atomic(using=using):
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {STATEMENT_MILLISECONDS}")
        return question(connection)


def impatient_connection(using: str) -> BaseDatabaseWrapper:
    """Return a new connection of the site's own kind that gives up soon; it is in no pool."""
    connection: BaseDatabaseWrapper = connections.create_connection(using)
    options = {**connection.settings_dict["OPTIONS"]}
    if connection.vendor == "postgresql":
        options |= network_options(CONNECT_SECONDS)
        options.pop("pool", None)
    elif connection.vendor == "sqlite":
        options["timeout"] = CONNECT_SECONDS
        # A probe only reads: it need not wait for the one writer.
        options["transaction_mode"] = "DEFERRED"
    elif connection.vendor == "mysql":
        options["connect_timeout"] = int(CONNECT_SECONDS)
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options}
    return connection
