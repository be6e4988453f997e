"""The backend of Django's Tasks that `settings.TASKS` names, and the limits of a task.

TASKS = {"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend"}}
"""

from typing import Any

from django.core.checks import CheckMessage

from .task_backend.backend import JobBackend
from .task_backend.limits import task_limits

__all__ = ["JobQueueBackend", "task_limits"]


class JobQueueBackend(JobBackend):
    """Runs tasks as jobs of this queue: claimed by `run_jobworker`, seen in the admin.

    `OPTIONS`, all optional: `max_attempts`, `max_runtime` and `provider`, the limits of the tasks
    that are defined with this alias and say nothing themselves; `database`, the alias that the jobs
    are written to; `dedup`, a function of a task, its args and its kwargs, or the path of one, that
    returns a key: one job with a key may wait or run at a time, None for no such bound;
    `result_retention`, how long ended jobs are kept, a timedelta or seconds.
    """

    def check(self, **_: Any) -> list[CheckMessage]:
        """Return what is wrong with the alias, as system checks."""
        from .checks.tasks import check_backend

        return check_backend(self.alias, self.options)
