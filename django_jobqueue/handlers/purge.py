"""The built-in job that deletes old jobs. Import it once the app registry is ready."""

from datetime import timedelta
from typing import Any

from django.db import router
from django.utils.translation import gettext_lazy

from .. import registry
from ..conf import settings
from ..exceptions import InvalidSettings
from ..managers import ERASE_BATCH
from ..models import Job
from ..policy import ExecutionProfile
from .base import JobHandler

PURGE_TYPE = "jobqueue.history.purge"
PURGE_PRIORITY = 100


class PurgeHistory(JobHandler):
    """Deletes terminal jobs older than `HISTORY_RETENTION`; their totals stay in the rollup."""

    type = PURGE_TYPE
    label = gettext_lazy("Purge of old jobs")
    profile = ExecutionProfile(max_runtime=timedelta(hours=1))

    def process(self, job: Job) -> dict[str, Any]:
        """Delete batch by batch, so that a stopped or repeated run loses nothing."""
        manager = Job.objects.db_manager(router.db_for_write(Job, instance=job))
        retention = timedelta(seconds=settings.HISTORY_RETENTION)
        purged = 0
        while not job.claim_lost:
            erased = manager.purge(retention, batches=1)
            purged += erased
            if erased < ERASE_BATCH:
                break
        return {"purged": purged}


purge_history = PurgeHistory()


def register() -> None:
    """Register the handler, unless `PURGE_ENABLED` is False."""
    try:
        enabled = settings.PURGE_ENABLED
    except InvalidSettings:
        return  # The system checks report it, and no worker starts.
    if enabled:
        registry.register(purge_history)
