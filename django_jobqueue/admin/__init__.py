"""The admin: over the same querysets and transitions that the workers use."""

from . import jobs, pauses, rollups, schedules, workers

__all__ = ["jobs", "pauses", "rollups", "schedules", "workers"]
