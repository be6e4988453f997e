"""Ending attempts from outside: those over their time, and those a blocked event loop took along.

Python cannot end a thread. The attempt ends, its slot is replaced, and the handler's code is left
to run on with nothing it could change: its claim is gone, its SQL statements are cancelled.
"""

import threading
from collections.abc import Callable

from ..conf import settings
from ..job_context import log_fields
from ..logs import get_logger
from ..states import Decision, SettleOutcome
from .event_loop import PING_SECONDS, EventLoop, EventLoops
from .exchange import Exchange
from .execution import Execution
from .running import Running
from .watchdog import Watchdog

logger = get_logger(__name__)

SILENCE_SECONDS = 5.0
"""After this long a cancelled task, or an event loop that does not come round, is given up."""


class Abandonment:
    """Takes slots back from attempts that do not end by themselves.

    `replace_slot` starts a new slot in the place of the attempt's, which first hands in the
    decision given. `on_too_many` is called when more than `MAX_ABANDONED` handlers run on.
    """

    def __init__(
        self,
        exchange: Exchange,
        execution: Execution,
        event_loops: EventLoops,
        watchdog: Watchdog,
        *,
        replace_slot: Callable[[Running, Decision | None], None],
        on_too_many: Callable[[], None],
    ) -> None:
        self._watchdog = watchdog
        self._exchange = exchange
        self._execution = execution
        self._event_loops = event_loops
        self._replace_slot = replace_slot
        self._on_too_many = on_too_many
        self._left_behind: list[Running] = []
        watchdog.on_timeout = self._time_out
        event_loops.on_start = self._watch_loop

    @property
    def count(self) -> int:
        """How many abandoned handlers still run."""
        return sum(not running.left for running in self._left_behind)

    def _time_out(self, running: Running) -> None:
        if not running.end():
            return
        logger.error(
            "Job %s (%s) ran longer than %g s and is abandoned",
            running.claim.job_id,
            running.job_type,
            running.ceiling.total_seconds() if running.ceiling else 0.0,
            extra=log_fields(*running.about),
        )
        self._leave_behind(running, self._execution.time_out(running))

    def _leave_behind(self, running: Running, decision: Decision | None) -> None:
        running.stop_span()
        running.tell_handler()
        # A new list: others count the old one meanwhile.
        still_here = [other for other in self._left_behind if not other.left]
        self._left_behind = [*still_here, running]
        self._replace_slot(running, decision)
        # A cancel request opens a connection of its own: it must not hold up other deadlines.
        threading.Thread(target=running.interrupt, name="interrupt", daemon=True).start()
        if self.count > settings.MAX_ABANDONED:
            self._on_too_many()

    def _watch_loop(self, loop: EventLoop) -> None:
        self._watchdog.later(PING_SECONDS, lambda: self._check_loop(loop))

    def _check_loop(self, loop: EventLoop) -> None:
        if loop is not self._event_loops.current:
            return
        if loop.silent_seconds() < SILENCE_SECONDS:
            self._watch_loop(loop)
            return
        blocking = loop.current()
        logger.error(
            "The event loop is blocked for %.0f s by %s: it is replaced, and the other jobs on it "
            "are handed back",
            loop.silent_seconds(),
            f"job {blocking.claim.job_id} ({blocking.job_type})" if blocking else "no job",
            extra=log_fields(*blocking.about) if blocking else None,
        )
        for running in self._event_loops.replace(loop):
            if running.end():
                self._exchange.running.remove(running.claim.token)
                self._exchange.release_soon(running.claim)
                running.tell_end(SettleOutcome.RELEASED)
                self._leave_behind(running, None)
