"""Workers, pauses and totals in the admin."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.utils import timezone

from django_jobqueue.models import JobAttempt, JobStatsRollup, WorkerProcess
from tests.admin.conftest import page
from tests.admin.test_list import cells


def worker(host, *, seen):
    now = timezone.now()
    row = {"pid": 7, "version": "1.2.3", "mode": "all", "slots": 4, "busy": 3}
    return WorkerProcess.objects.create(host=host, started_at=now, seen_at=now - seen, **row)


def test_a_worker_shows_its_slots_and_whether_it_still_reports_itself(admin_client):
    worker("alive", seen=timedelta(seconds=10))
    worker("gone", seen=timedelta(minutes=3))

    alive, gone = cells(page(admin_client, "workerprocess_changelist"))

    assert {
        "host": "alive",
        "pid": "7",
        "version": "1.2.3",
        "mode_name": "all",
    }.items() <= alive.items()
    assert alive["busy_slots"] == "3 / 4"
    assert alive["last_seen"] == "10 s ago"
    assert alive["presence"] == "✓ live"
    assert gone["last_seen"] == "3 min ago"
    assert gone["presence"] == "⚠ silent"


def test_one_worker_has_a_page(admin_client):
    row = worker("alive", seen=timedelta(0))

    assert page(admin_client, "workerprocess_change", row.pk).status_code == 200


def test_totals_of_purged_jobs_show_counts_and_the_mean_duration(admin_client):
    JobStatsRollup.objects.create(
        type="a", succeeded_count=8, failed_count=2, duration_sum=30.0, duration_samples=10
    )
    JobStatsRollup.objects.create(type="b", cancelled_count=1)

    some, none = cells(page(admin_client, "jobstatsrollup_changelist"))

    assert some == {
        "type": "a",
        "succeeded_count": "8",
        "failed_count": "2",
        "cancelled_count": "0",
        "mean_duration": "3 s",
    }
    assert none["mean_duration"] == "-"


@pytest.mark.parametrize("name", ["workerprocess", "jobstatsrollup"])
def test_nothing_is_added_there_by_form(admin_client, name):
    assert page(admin_client, f"{name}_add").status_code == 403


def test_attempts_have_no_list_of_their_own():
    assert not admin.site.is_registered(JobAttempt)
