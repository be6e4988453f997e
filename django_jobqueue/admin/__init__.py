"""The admin: a read-only look at the queue."""

from . import jobs, others, schedules

__all__ = ["jobs", "others", "schedules"]
