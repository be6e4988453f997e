"""Where and when insights are read: one alias, and one moment of its clock for all figures."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connections, router

from ..database.clock import database_now
from ..models import Job
from ..querysets import JobQuerySet
from .window import checked_window


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at the queue."""

    using: str
    now: datetime

    @classmethod
    def of(cls, using: str | None) -> "Reading":
        """Return a reading of the database `using` (None: where `Job` is read), made now."""
        alias = router.db_for_read(Job) if using is None else using
        return cls(alias, database_now(connections[alias]))

    @property
    def jobs(self) -> JobQuerySet:
        """All jobs, on the alias."""
        return Job.objects.using(self.using)

    def since(self, window: timedelta) -> datetime:
        """Return when a window begins; raise `InvalidWindow` for one that is not covered."""
        return self.now - checked_window(window)

    def age(self, moment: datetime | None) -> timedelta | None:
        """Return how long ago a moment was, never less than nothing."""
        return None if moment is None else max(self.now - moment, timedelta(0))
