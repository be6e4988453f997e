"""Why a job waits that no live worker takes, and what to do about it."""

import shlex
from collections.abc import Sequence

from .insights import LiveWorker

NO_WORKER = "no worker is alive. Run: python manage.py run_jobworker"


def unserved(job_type: str, queue: str, live: Sequence[LiveWorker]) -> str | None:
    """Return why no live worker takes jobs of that type in that queue; None if one does."""
    if not live:
        return NO_WORKER
    if any(worker.takes(job_type, queue) for worker in live):
        return None
    if not any(job_type in worker.types for worker in live):
        return (
            f"no worker runs {job_type}: register its handler, or cancel them: "
            f"python manage.py jobqueue cancel --all-matching --type {shlex.quote(job_type)}"
        )
    return (
        f"no worker takes {job_type} from the queue {queue}: run one that does: "
        f"python manage.py run_jobworker --queues {shlex.quote(queue)}"
    )
