"""The admin: a read-only look at the queue."""

from . import jobs, others

__all__ = ["jobs", "others"]
