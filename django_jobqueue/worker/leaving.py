"""The end of a worker's process: at once, whatever threads remain."""

import atexit
import os
import sys
import threading
from typing import NoReturn

LAST_HOOKS_SECONDS = 1.0
"""How long what the site registered with `atexit` may take: sending its last spans and metrics."""


def leave(code: int) -> NoReturn:
    """End this process with an exit code, after its exit hooks or a second of them.

    Python's own end would join every thread first, and so wait for handlers that were given up.
    """
    # In a thread, as a hook may hang. There is no public call for what Python does at its end.
    hooks = threading.Thread(target=atexit._run_exitfuncs, name="exit-hooks", daemon=True)  # noqa: SLF001
    try:
        hooks.start()
        hooks.join(LAST_HOOKS_SECONDS)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
