"""Schedules: jobs that are enqueued again and again, at the ticks of a cron expression.

A schedule is a row. `declaring` says which ones the code wants, `syncing` writes them to their
rows, `firing` makes one job of each tick that is due.
"""

from .declaring import Declaration, schedule

__all__ = ["Declaration", "schedule"]
