"""The manager, once for each way in which its transitions are written."""

import os

import pytest

from django_jobqueue.database.portable import Portable
from django_jobqueue.managers import JobManager, JobQuerySet, tables_of
from django_jobqueue.models import Job
from tests import databases

ON_POSTGRESQL = databases.chosen_kind(os.environ) == databases.POSTGRESQL


class PortableManager(JobManager.from_queryset(JobQuerySet)):
    """A manager that takes the portable path on any database: on PostgreSQL with row locks."""

    def _database(self):
        return Portable(tables_of(self.model), self.write_alias)


def portable_manager():
    manager = PortableManager()
    manager.model = Job
    return manager


@pytest.fixture(params=["own", "portable"] if ON_POSTGRESQL else ["own"])
def jobs(request):
    """The manager on the path of this database, and on the portable one where that differs."""
    return Job.objects if request.param == "own" else portable_manager()
