"""What a person writes: durations, moments and text."""

import argparse
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from django_jobqueue.commandline import reading
from django_jobqueue.models import Job
from tests.factories import JobFactory

LORD_HOWE = {"TIME_ZONE": "Australia/Lord_Howe"}
"""Half an hour of daylight saving: 10:30 in winter, 11:00 in summer."""

SUMMER = datetime(2026, 1, 15, 12, 0)  # noqa: DTZ001 (as a site without time zones holds it)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-15T12:00", datetime(2026, 1, 15, 1, tzinfo=UTC)),
        ("2026-07-15 12:00:30", datetime(2026, 7, 15, 1, 30, 30, tzinfo=UTC)),
        ("2026-01-15", datetime(2026, 1, 14, 13, tzinfo=UTC)),
        ("2026-01-15T12:00Z", datetime(2026, 1, 15, 12, tzinfo=UTC)),
        ("2026-01-15T12:00-05:00", datetime(2026, 1, 15, 17, tzinfo=UTC)),
    ],
)
def test_a_moment_without_an_offset_is_in_the_zone_of_the_site(text, moment):
    with override_settings(USE_TZ=True, **LORD_HOWE):
        assert reading.since(text) == moment


@pytest.mark.parametrize(
    "text", ["2026-01-15T12:00", "2026-01-15T01:00Z", "2026-01-14T20:00-05:00"]
)
def test_a_site_without_time_zones_gets_its_own_time(text):
    with override_settings(USE_TZ=False, **LORD_HOWE):
        assert reading.since(text) == SUMMER


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00+14:00",
        "0001-01-01",
        "1969-12-31T23:59Z",
        "9999-12-31T23:59-10:00",
        "9999-12-31",
    ],
)
def test_a_moment_that_no_column_holds_is_refused(use_tz, text):
    with (
        override_settings(USE_TZ=use_tz, **LORD_HOWE),
        pytest.raises(argparse.ArgumentTypeError, match="moment from 1970-01-01 to 9999-01-01"),
    ):
        reading.since(text)


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "-3h", "99999w", "2026-01-15T25"])
def test_what_is_neither_duration_nor_moment_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected a duration such as 2h"):
        reading.since(text)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("moment", [reading.FIRST, reading.LAST])
@pytest.mark.django_db
def test_the_database_takes_the_first_and_the_last_moment(jobqueue_command, zone, moment):
    job = JobFactory()
    with override_settings(TIME_ZONE=zone):
        answer = jobqueue_command("list", "--since", moment.isoformat(), "--format", "json")

    assert answer.error is None
    expected = [str(job.pk)] if moment == reading.FIRST else []
    assert [found["id"] for found in answer.said["jobs"]] == expected


def test_text_is_utf_8():
    assert reading.text("日本") == "日本"
    with pytest.raises(argparse.ArgumentTypeError, match=r"\\udcff.*: expected text in UTF-8"):
        reading.text("a\udcff")


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--type", "\udcff"],
        ["list", "--queue", "\udcff"],
        ["list", "--subject", "order:\udcff"],
        ["pause", "queue", "\udcff"],
        ["pause", "queue", "a", "--reason", "\udcff"],
        ["resume", "type", "\udcff"],
    ],
)
def test_every_word_refuses_text_that_is_not_utf_8(jobqueue_command, words):
    assert "expected text in UTF-8" in jobqueue_command(*words).refusal


JOBS = """
from datetime import timedelta
from django_jobqueue.models import Job

now = Job.objects.now()
Job.objects.enqueue("site.old")
Job.objects.update(created_at=now - timedelta(hours=3))
Job.objects.enqueue("site.new")
"""


@pytest.mark.parametrize("use_tz", [True, False])
def test_since_means_the_same_instant_however_the_site_writes_time(site, use_tz):
    Job.objects.all().delete()
    project = site(f"USE_TZ = {use_tz}", "TIME_ZONE = 'America/Chicago'")
    assert project.manage("shell", "-v0", "-c", JOBS).returncode == 0

    def types(since):
        done = project.manage("jobqueue", "list", f"--since={since}")
        assert done.returncode == 0, done.stderr
        return [line.split()[1] for line in done.stdout.splitlines()[1:]]

    now = datetime.now(UTC)
    chicago = ZoneInfo("America/Chicago")
    for hours, expected in ((2, ["site.new"]), (4, ["site.new", "site.old"])):
        moment = now - timedelta(hours=hours)
        local = moment.astimezone(chicago)
        assert types(moment.isoformat()) == expected
        assert types(local.isoformat()) == expected
        assert types(local.replace(tzinfo=None).isoformat()) == expected
        assert types(f"{hours}h") == expected
