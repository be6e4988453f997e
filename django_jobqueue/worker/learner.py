"""The learner: comes to know the tasks that jobs wait for and no `tasks` module holds."""

import threading
import time
from collections.abc import Callable

from django.db import connections

from .. import registry
from ..logs import get_logger
from ..managers import JobManager
from ..managers.claims import MOST_WAITING_TYPES
from ..task_backend import site
from .eligibility import Eligibility
from .loops import Loop

logger = get_logger(__name__)

LOOK_SECONDS = 60.0

MOST_LOOKS = 10
"""How often it looks at once, when one look could not tell of all types."""

FORGET_SECONDS = 600.0
"""Until it looks again at types that this worker does not run."""


class Learner(Loop):
    """A loop that looks once a minute for waiting types that this process does not know.

    Nothing is imported but the module of a task, inside an installed app. An import may take its
    time, or hang: it has a thread of its own, so that nothing else waits for it. `on_learned` is
    called when there is something new to claim.
    """

    def __init__(
        self, manager: JobManager, eligibility: Eligibility, on_learned: Callable[[], None]
    ) -> None:
        super().__init__("learner", threading.Event(), using=manager.write_alias)
        self._manager = manager
        self._eligibility = eligibility
        self._on_learned = on_learned
        self._left: set[str] = set()
        self._forget_at = 0.0
        self._looking_since: float | None = time.monotonic()

    @property
    def busy(self) -> bool:
        """Whether it looks, and that not for so long that a drain would wait in vain."""
        since = self._looking_since
        return since is not None and time.monotonic() - since < LOOK_SECONDS

    def shut_down(self) -> None:
        """End the thread after the import at hand. Idempotent."""
        self.halt.set()

    def step(self) -> bool:
        """Look, then wait a minute."""
        self._looking_since = time.monotonic()
        if self._looking_since >= self._forget_at:
            self._left.clear()
            self._forget_at = self._looking_since + FORGET_SECONDS
        for _ in range(MOST_LOOKS):
            if self.halt.is_set() or self._look() < MOST_WAITING_TYPES:
                break
        self._looking_since = None
        connections[self._manager.write_alias].close()  # Not kept for one statement a minute.
        return not self.halt.wait(LOOK_SECONDS)

    def _look(self) -> int:
        """Look once; return how many types there were."""
        known = {*registry.types(), *self._left}
        waiting = self._manager.waiting_types(known, queues=self._eligibility.queues)
        for job_type, payload in waiting.items():
            # Whatever comes of it: it is not looked up again at once.
            self._left.add(job_type)
            if self._is_task(job_type, payload):
                logger.info(
                    "Jobs of task %s wait, which is not known here; its module is looked up",
                    job_type,
                )
                if site.learn(job_type):
                    self._on_learned()
        return len(waiting)

    def _is_task(self, job_type: str, payload: object) -> bool:
        """Whether this worker may run the type, and one of its jobs is the call of a task."""
        asked = self._eligibility.types
        if asked is not None and job_type not in asked:
            return False
        if site.is_call(payload):
            return True
        some = self._manager.some_payloads(job_type, self._eligibility.queues)
        return any(map(site.is_call, some))
