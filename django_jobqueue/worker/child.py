"""A worker in a process that a supervisor spawned. Importable before Django is set up."""

import multiprocessing
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from ..logs import get_logger
from .leaving import leave
from .options import ExitCode, WorkerOptions
from .streams import open_closed_streams

logger = get_logger(__name__)


def child(options: WorkerOptions) -> None:
    """Run one worker in a spawned process; ends it at once, whatever threads remain."""
    code = ExitCode.FAILED
    open_closed_streams()
    try:
        code = run_child(options)
    except BaseException:
        logger.exception("The worker process failed")
    leave(code)


def run_child(options: WorkerOptions) -> ExitCode:
    """Set Django up and run one worker until it ends, or its supervisor vanishes."""
    import django

    django.setup()

    from ..exceptions import InvalidSettings, SetupError
    from .control import Misfortune
    from .preflight import preflight
    from .process import exit_code, make_pool, run_worker

    try:
        preflight(options.database, options.types, options.queues, options.health_file)
        pool = make_pool(options)
    except (SetupError, InvalidSettings) as error:
        print(error, file=sys.stderr)  # noqa: T201 (a program's word to its operator)
        return ExitCode.FAILED
    watch_supervisor(lambda: pool.inbox.put(Misfortune.ORPHANED))
    return exit_code(run_worker(pool, say, health_file=options.health_file))


def watch_supervisor(on_vanished: Callable[[], None]) -> None:
    """Call back when the supervisor's process is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        on_vanished()

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


def say(line: str) -> None:
    """Print one line at once."""
    with suppress(OSError):  # A full disk ends no worker.
        print(line, flush=True)  # noqa: T201 (a program's word to its operator)
