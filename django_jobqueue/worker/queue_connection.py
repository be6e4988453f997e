"""The worker's own connections: they notice a dead peer in time, whatever the site's settings."""

import math
from collections import deque
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..conf import settings
from .connections import discard, tidy_connections
from .planning import plan_once
from .silence import give_up_silence

WITHOUT_CAP_SECONDS = 30.0
KEEPALIVES = 3

STEPS_OF_SILENCE = 3
"""Noticing a silence, connecting to ask about it, and asking: together within the patience."""


def patience_seconds() -> float:
    """Return how long a silent peer is waited for: a third of `LEASE_CAP`, 30 s without one."""
    cap = settings.LEASE_CAP
    return WITHOUT_CAP_SECONDS if cap is None else min(float(cap) / 3, WITHOUT_CAP_SECONDS)


def network_options(patience: float) -> dict[str, Any]:
    """Return libpq's parameters that give up a silent connection after `patience` seconds."""
    whole = max(math.floor(patience), 1)
    interval = max(whole // (KEEPALIVES + 1), 1)
    return {
        "connect_timeout": max(whole, 2),  # libpq takes 1 for 2.
        "keepalives": 1,
        "keepalives_idle": interval,
        "keepalives_interval": interval,
        "keepalives_count": KEEPALIVES,
        "tcp_user_timeout": max(math.floor(patience * 1000), 1),
    }


def queue_connection(using: str) -> BaseDatabaseWrapper:
    """Return a new connection wrapper of the site's own kind that notices a dead peer.

    What the site sets itself stays, but for a pool: a queue connection is held for good.
    """
    connection: BaseDatabaseWrapper = connections.create_connection(using)
    # With DEBUG on, a log of every statement would only grow.
    connection.make_debug_cursor = connection.make_cursor  # type: ignore[method-assign,assignment]
    connection.queries_log = deque(maxlen=0)  # Of transactions, which no cursor begins.
    if connection.vendor == "postgresql":
        options = {**network_options(patience_seconds()), **connection.settings_dict["OPTIONS"]}
        options.pop("pool", None)
        connection.settings_dict = {
            **connection.settings_dict,
            "OPTIONS": options,
            "CONN_MAX_AGE": None,
        }
        give_up_silence(connection, patience_seconds() / STEPS_OF_SILENCE)
        plan_once(connection)
    return connection


def use_queue_connection(using: str) -> None:
    """Give this thread a connection of its own for the queue's statements."""
    connections[using] = queue_connection(using)


def forget_connection(using: str) -> None:
    """Close this thread's connection, whatever state it is in; the next statement opens another."""
    discard(connections[using])
    use_queue_connection(using)


def mend_connections(using: str) -> None:
    """Discard what somebody else's code left in a transaction on this thread's connections.

    The queue's own connection is not tested before its next use: a statement that fails says the
    same.
    """
    tidy_connections()
    for connection in connections.all(initialized_only=True):
        if connection.alias == using:
            connection.health_check_enabled = False  # type: ignore[attr-defined]
            return
    use_queue_connection(using)
