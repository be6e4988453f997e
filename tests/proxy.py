"""A TCP proxy before the PostgreSQL server, which misbehaves on demand."""

import contextlib
import socket
import threading
from copy import deepcopy

from django.db import connections

SECONDS = 30
HERE = "127.0.0.1"
CHUNK = 65536
NOTIFICATION = b"A"


class Proxy:
    """Forwards connections; they cannot be encrypted, as some messages may be dropped.

    `refusing`: new connections are closed at once. `deaf`: notifications do not pass, as behind a
    pooler that gave the session to somebody else.
    """

    def __init__(self, server):
        self.refusing = False
        self.deaf = False
        self._server = server
        self._door = socket.create_server((HERE, 0))
        self._pairs = []
        self._changed = threading.Condition()
        self._count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self):
        return self._door.getsockname()[1]

    def freeze(self):
        """Forward nothing more on the connections there are, and close none of them."""
        for pair in self._pairs:
            pair.frozen.set()

    def wait_for_connections(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: self._count >= count, SECONDS), self._count

    def close(self):
        self._door.close()
        for pair in self._pairs:
            pair.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if self.refusing:
                    client.close()
                else:
                    self._pairs.append(Pair(client, self._server, deaf=self.deaf))
                with self._changed:
                    self._count += 1
                    self._changed.notify_all()


class Pair:
    def __init__(self, client, server, *, deaf):
        self.frozen = threading.Event()
        self._client = client
        self._server = socket.create_connection(server)
        self._deaf = deaf
        for target in (self._forward, self._return):
            threading.Thread(target=target, daemon=True).start()

    def close(self):
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _forward(self):
        with contextlib.suppress(OSError):
            while data := self._client.recv(CHUNK):
                if not self.frozen.is_set():
                    self._server.sendall(data)
        self._end()

    def _return(self):
        with contextlib.suppress(OSError), self._server.makefile("rb") as messages:
            while head := messages.read(5):
                body = messages.read(int.from_bytes(head[1:], "big") - 4)
                dropped = self._deaf and head[:1] == NOTIFICATION
                if not (dropped or self.frozen.is_set()):
                    self._client.sendall(head + body)
        self._end()

    def _end(self):
        if not self.frozen.is_set():
            self.close()


@contextlib.contextmanager
def proxied(alias="default"):
    """Lead new connections of an alias, such as those of new threads, through a proxy; yield it.

    The connection that the test itself has stays as it is.
    """
    direct = connections.settings[alias]
    proxy = Proxy((direct["HOST"], int(direct["PORT"])))
    options = {**direct["OPTIONS"], "sslmode": "disable", "gssencmode": "disable"}
    led = {"HOST": HERE, "PORT": str(proxy.port), "OPTIONS": options}
    connections.settings[alias] = deepcopy(direct) | led
    try:
        yield proxy
    finally:
        connections.settings[alias] = direct
        proxy.close()
