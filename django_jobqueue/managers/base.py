"""What all transitions stand on: the alias they write to, its clock and its database."""

from datetime import datetime
from typing import TYPE_CHECKING, cast

from django.db import connections, models, router

from ..database import QueueDatabase, queue_database
from ..database.clock import database_now
from ..querysets import JobQuerySet, tables_of

if TYPE_CHECKING:
    from ..models import Job  # noqa: F401 (the base class names it in a string)


class TransitionManager(models.Manager["Job"]):
    """A manager whose statements all go to one alias."""

    @property
    def write_alias(self) -> str:
        """The alias that every statement of the queue goes to."""
        return self._db or router.db_for_write(self.model)

    def on_write_alias(self) -> JobQuerySet:
        """All jobs, read where they are written: a replica may lag behind a claim."""
        return cast("JobQuerySet", self.get_queryset().using(self.write_alias))

    def now(self) -> datetime:
        """Return the time by the clock of the database that the jobs are in."""
        return database_now(connections[self.write_alias])

    def _database(self) -> QueueDatabase:
        return queue_database(tables_of(self.model), self.write_alias)
