"""What the queue says on its PostgreSQL channel, heard over a connection of the test's own."""

import contextlib
import itertools

from django.db import connections

from django_jobqueue import wakeups

SECONDS = 30


class Radio:
    def __init__(self, connection):
        self._connection = connection
        self._numbers = itertools.count()
        self._run(f"LISTEN {wakeups.CHANNEL}")

    def heard(self):
        """Return every payload until now: PostgreSQL delivers in the order of the commits."""
        mark = f"mark {next(self._numbers)}"
        self.say(mark)
        payloads = []
        for notification in self._connection.connection.notifies(timeout=SECONDS):
            if notification.payload == mark:
                return payloads
            payloads.append(notification.payload)
        raise AssertionError(f"Nothing arrived on the channel within {SECONDS} s.")

    def wake_ups(self):
        """Return what was heard, sorted by queue."""
        return sorted(map(wakeups.decode, self.heard()), key=lambda wake_up: wake_up.queue)

    def say(self, payload):
        self._run("SELECT pg_notify(%s, %s)", wakeups.CHANNEL, payload)

    def _run(self, sql, *values):
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values)


@contextlib.contextmanager
def radio():
    connection = connections.create_connection("default")
    try:
        yield Radio(connection)
    finally:
        connection.close()
