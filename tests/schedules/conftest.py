from datetime import UTC, datetime

import pytest
from django.db import connection

from django_jobqueue import registry
from django_jobqueue.database.clock import database_now
from django_jobqueue.models import Schedule

YEARLY = "0 0 1 1 *"


@pytest.fixture(autouse=True)
def _registry():
    """Handlers and schedules of one test only."""
    before = registry.handlers()
    yield
    registry._handlers.clear()
    registry._handlers.update(before)


@pytest.fixture
def make_schedule(transactional_db):
    """Make rows that tick once a year, of whose ticks the last `ticks` ones are not handled yet.

    Once a year, so that hardly any run of the tests sees a tick come.
    """

    def make(ticks=1, **fields):
        fields = {"name": "yearly", "type": "test.echo", "cron": YEARLY} | fields
        next_tick_at = tick(ticks - 1) if ticks else None
        return Schedule.objects.create(**{"next_tick_at": next_tick_at, **fields})

    return make


def tick(back=0):
    """The last tick of a yearly schedule, or one so many years before; -1 is the next."""
    now = database_now(connection)
    return datetime(now.year - back, 1, 1, tzinfo=UTC)
