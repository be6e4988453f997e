"""Rows that insights read, at moments a test chooses."""

from datetime import timedelta

from django.db import connection

from django_jobqueue.database.clock import database_now
from django_jobqueue.models import WorkerProcess
from tests.factories import JobFactory


def now():
    return database_now(connection)


def finished(seconds, *, ago=timedelta(minutes=1), **values):
    """Make a job that succeeded (or else, as `values` say) so long ago after so many seconds."""
    at = now() - ago
    values = {"succeeded": not {"failed", "cancelled"} & set(values)} | values
    return JobFactory(started_at=at - timedelta(seconds=seconds), finished_at=at, **values)


def history(count=100, seconds=10.0, **values):
    return [finished(seconds, **values) for _ in range(count)]


def worker(*types, slots=2, seen_ago=timedelta(0), **values):
    at = now() - seen_ago
    chosen = {"host": "web", "pid": 1, "version": "0.1", "mode": "all", "busy": 0} | values
    return WorkerProcess.objects.create(
        slots=slots, types=list(types), started_at=at, seen_at=at, **chosen
    )
