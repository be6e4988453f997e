"""The admin: over the same querysets and transitions that the workers use."""

from . import insights, jobs, pauses, rollups, schedules, workers

__all__ = ["insights", "jobs", "pauses", "rollups", "schedules", "workers"]
