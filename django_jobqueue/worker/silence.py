"""A session that no longer answers is given up, whatever stands between the server and us.

TCP's own time-outs watch the next hop only. A proxy that took our bytes and forwards none keeps
them content, so a statement could wait for ever. A slow statement is none of this: before a
silent session is given up, the server is asked over another connection whether it is at work.
"""

import time
from collections.abc import Callable, Generator
from typing import Any

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

AT_WORK = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"

SHORTEST_CONNECT_TIMEOUT = 2
"""libpq takes 1 for 2."""

Waiting = Generator[Any, Any, Any]


def give_up_silence(
    connection: BaseDatabaseWrapper,
    seconds: float,
    *,
    is_at_work: Callable[[int], bool] | None = None,
) -> None:
    """Let whatever waits on a PostgreSQL wrapper for `seconds` fail with OperationalError.

    `is_at_work` is asked first, with the session's process id, and while it says yes the wait
    goes on; by default the server is asked. That takes another two times `seconds` at most, or
    what libpq takes at least to connect.
    """
    connect = connection.get_new_connection
    ask = is_at_work or (lambda pid: asked_elsewhere(connection, seconds, pid))

    def get_new_connection(parameters: dict[str, Any]) -> Any:
        raw = connect(parameters)
        wait = raw.wait

        def bounded_wait(waiting: Waiting, *args: Any, **options: Any) -> Any:
            patient = bounded(waiting, seconds, lambda: ask(raw.info.backend_pid))
            return wait(patient, *args, **options)

        raw.wait = bounded_wait
        return raw

    connection.get_new_connection = get_new_connection  # type: ignore[assignment]


def bounded(waiting: Waiting, seconds: float, is_at_work: Callable[[], bool]) -> Waiting:
    """Pass psycopg's wait on; it comes by ten times a second, with a zero when nothing arrived."""
    try:
        wanted = next(waiting)
        heard_at = time.monotonic()
        doubtful = False
        while True:
            ready = yield wanted
            silent = time.monotonic() - heard_at
            if ready or (silent > seconds and not doubtful):
                # The answer may arrive while we ask, so there is one more look afterwards.
                doubtful = not (ready or is_at_work())
                heard_at = heard_at if doubtful else time.monotonic()
            elif doubtful:
                from psycopg import OperationalError

                raise OperationalError(f"the server was silent for {silent:.1f} s")
            wanted = waiting.send(ready)
    except StopIteration as stop:
        return stop.value


def asked_elsewhere(connection: BaseDatabaseWrapper, seconds: float, pid: int) -> bool:
    """Ask the server over another connection whether the session `pid` runs a statement."""
    other = connections.create_connection(connection.alias)
    options = connection.settings_dict["OPTIONS"] | {
        "connect_timeout": max(int(seconds), SHORTEST_CONNECT_TIMEOUT)
    }
    other.settings_dict = {**connection.settings_dict, "OPTIONS": options}
    give_up_silence(other, seconds, is_at_work=lambda _: False)
    try:
        with other.cursor() as cursor:
            cursor.execute(AT_WORK, [pid])
            return cursor.fetchone() is not None
    except DatabaseError:
        return False
    finally:
        other.close()
