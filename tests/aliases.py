"""Further aliases of the test database, for as long as a test needs them."""

from contextlib import contextmanager
from copy import deepcopy

from django.db import connections


@contextmanager
def alias(name, **changes):
    """Add an alias `name` with the settings of the test database, some of them changed.

    Django's test case forbids it to connect by itself: call `connections[name].connect()` in each
    thread that may use it.
    """
    connections.settings[name] = deepcopy(connections["default"].settings_dict) | changes
    try:
        yield name
    finally:
        connections[name].close()
        del connections[name]
        del connections.settings[name]
