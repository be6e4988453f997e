"""The built-in job that deletes old jobs. Import it once the app registry is ready."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.db import router
from django.utils.translation import gettext_lazy

from .. import registry
from ..conf import settings
from ..exceptions import InvalidSettings
from ..managers import JobManager
from ..models import Job
from ..policy import ExecutionProfile, Keeping, keepings
from .base import JobHandler

PURGE_TYPE = "jobqueue.history.purge"
PURGE_PRIORITY = 100


_learn: list[Callable[[JobManager, timedelta], None]] = []


def ask_first(learn: Callable[[JobManager, timedelta], None]) -> None:
    """Let `learn` register handlers before the handlers are asked how long their jobs are kept.

    It gets the manager and `HISTORY_RETENTION`.
    """
    if learn not in _learn:
        _learn.append(learn)


def site_keepings(manager: JobManager) -> list[Keeping]:
    """Return how long which types are kept: by their handlers, else by `HISTORY_RETENTION`."""
    for learn in _learn:
        learn(manager, timedelta(seconds=settings.HISTORY_RETENTION))
    return keepings(
        {name: handler.history_retention for name, handler in registry.handlers().items()},
        history_retention=timedelta(seconds=settings.HISTORY_RETENTION),
    )


def purge(
    manager: JobManager, keepings: Iterable[Keeping], *, stop: Callable[[], bool] = lambda: False
) -> int:
    """Delete the terminal jobs that are kept no longer, until `stop`; return how many."""
    return sum(
        manager.purge(
            keeping.retention, types=keeping.types, except_types=keeping.except_types, stop=stop
        )
        for keeping in keepings
    )


class PurgeHistory(JobHandler):
    """Deletes terminal jobs older than their type is kept; their totals stay in the rollup."""

    type = PURGE_TYPE
    label = gettext_lazy("Purge of old jobs")
    profile = ExecutionProfile(max_runtime=timedelta(hours=1))

    def process(self, job: Job) -> dict[str, Any]:
        """Delete batch by batch, so that a stopped or repeated run loses nothing."""
        manager = Job.objects.db_manager(router.db_for_write(Job, instance=job))
        return {"purged": purge(manager, site_keepings(manager), stop=lambda: job.claim_lost)}


purge_history = PurgeHistory()


def register() -> None:
    """Register the handler, unless `PURGE_ENABLED` is False."""
    try:
        enabled = settings.PURGE_ENABLED
    except InvalidSettings:
        return  # The system checks report it, and no worker starts.
    if enabled:
        registry.register(purge_history)
