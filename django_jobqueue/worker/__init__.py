"""The worker: slots that claim one job, run it, settle it, and go on."""

from .pool import Pool

__all__ = ["Pool"]
