"""The admin: a read-only look at the queue."""

from . import jobs, others, rollups, schedules, workers

__all__ = ["jobs", "others", "rollups", "schedules", "workers"]
