import inspect
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from django_jobqueue import registry, schedule
from django_jobqueue.cron import MOST_CATCH_UP, ticks_after
from django_jobqueue.handlers.purge import PURGE_TYPE, PurgeHistory
from django_jobqueue.models import CatchUp, Schedule
from django_jobqueue.policy.ticks import TICK_GRACE
from django_jobqueue.schedules.declaring import declared
from django_jobqueue.worker.scheduler import LONGEST_PAUSE_SECONDS
from tests.pages import ROOT, example, table_rows

PAGE = ROOT / "docs" / "schedules.md"


@pytest.fixture(autouse=True)
def _registry():
    before = registry.handlers()
    yield
    registry._handlers.clear()
    registry._handlers.update(before)


def test_it_lists_every_argument_with_its_default():
    rows = table_rows(PAGE, "Argument of `schedule`")
    taken = inspect.signature(schedule).parameters.values()
    defaults = {
        argument.name: "" if argument.default is argument.empty else argument.default
        for argument in taken
    }

    assert {row[0]: eval(row[1] or "''") for row in rows} == defaults


def test_it_lists_every_policy():
    assert [row[0] for row in table_rows(PAGE, "Policy")] == CatchUp.values


def test_its_numbers_are_those_of_the_code():
    page = PAGE.read_text()

    assert f"up to {MOST_CATCH_UP:,}" in page
    assert page.count(f"{TICK_GRACE.total_seconds():.0f} seconds") == 2
    assert f"or {LONGEST_PAUSE_SECONDS:.0f} seconds if that is shorter" in page


def test_its_declaration_declares():
    exec(example("schedules.md", "reports/jobs.py (a schedule)"), {"__name__": "an_example"})

    found = declared()["reports.nightly"]
    assert (found.type, found.timezone) == ("reports.build-all", "Europe/Berlin")


@pytest.mark.django_db
def test_its_row_and_its_pause_work():
    exec(example("schedules.md", "a row"), {"__name__": "an_example"})
    Schedule.objects.get().full_clean()
    Schedule.objects.update(name="reports.nightly")

    exec(example("schedules.md", "pause and go on"), {"__name__": "an_example"})

    assert Schedule.objects.get().paused


def test_the_purge_is_as_it_says(settings):
    settings.JOBQUEUE = {}
    registry._handlers[PURGE_TYPE] = PurgeHistory()

    assert (declared()[PURGE_TYPE].cron, declared()[PURGE_TYPE].catch_up) == ("17 3 * * *", "once")


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (datetime(2026, 3, 28, 12, tzinfo=UTC), "29 03:00 +0200"),
        (datetime(2026, 10, 24, 12, tzinfo=UTC), "25 02:30 +0200"),
    ],
    ids=["spring", "autumn"],
)
def test_its_example_of_the_clock_change_is_true(start, expected):
    berlin = ZoneInfo("Europe/Berlin")
    (tick,) = islice(ticks_after("30 2 * * *", berlin, start), 1)

    assert tick.astimezone(berlin).strftime("%d %H:%M %z") == expected


@pytest.mark.parametrize("expression", ["0 0 L * *", "0 0 * * FRI#2", "0 0 * * 5L", "0 6 * * MON"])
def test_what_it_says_of_expressions_is_true(expression):
    Schedule(name="a", type="b", cron=expression).clean()
