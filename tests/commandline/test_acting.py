"""`jobqueue retry`, `cancel` and `reap`."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from django_jobqueue import discovery, job_handler, registry
from django_jobqueue.managers import bulk
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.signals import job_settled
from django_jobqueue.states import BulkReport, JobStatus
from tests.factories import JobFactory
from tests.managers.rows import claimed, expired, now

pytestmark = pytest.mark.django_db(transaction=True)


def status_of(job):
    return Job.objects.get(pk=job.pk).status


def test_jobs_are_retried_by_id_without_a_question(jobqueue_command):
    one, two = JobFactory(failed=True), JobFactory(cancelled=True)

    answer = jobqueue_command("retry", str(one.pk), str(two.pk), str(one.pk))

    assert answer.text == "2 jobs retried, 0 skipped.\n"
    assert status_of(one) == status_of(two) == JobStatus.PENDING
    assert jobqueue_command.asked == []


def test_what_cannot_be_retried_is_skipped(jobqueue_command):
    failed, done = JobFactory(failed=True), JobFactory(succeeded=True)

    answer = jobqueue_command("retry", str(failed.pk), str(done.pk))

    assert (answer.text, answer.error) == ("1 job retried, 1 skipped (1 in another state).\n", None)


def test_when_nothing_was_changed_that_is_a_refusal(jobqueue_command):
    job = JobFactory(succeeded=True)

    answer = jobqueue_command("cancel", str(job.pk), "--format", "json")

    assert answer.said == {
        "done": 0,
        "skipped": 1,
        "reasons": {"state": 1},
        "remaining": 0,
        "error": None,
    }
    assert answer.refusal == "No job was cancelled: only pending jobs are."
    assert answer.error.returncode == 1


def test_what_the_database_ended_early_is_told_with_what_was_done(jobqueue_command, monkeypatch):
    job = JobFactory(failed=True)
    broken = BulkReport(2, {}, 3, OperationalError("canceling statement"))
    monkeypatch.setattr(type(Job.objects), "retry_all", lambda *_, **__: broken)

    answer = jobqueue_command("retry", str(job.pk), "--format", "json")

    assert (answer.said["done"], answer.said["remaining"]) == (2, 3)
    assert answer.said["error"] == "canceling statement"
    assert answer.refusal == "The database ended it early: canceling statement"
    assert answer.error.returncode == 1


def test_an_unknown_id_changes_nothing(jobqueue_command):
    job = JobFactory()

    answer = jobqueue_command("cancel", str(job.pk), "ffffffff")

    assert "No job's id begins with ffffffff" in answer.refusal
    assert status_of(job) == JobStatus.PENDING


def test_all_that_match_are_changed_after_a_yes(jobqueue_command):
    mine = [JobFactory(failed=True, type="test.a") for _ in range(3)]
    other = JobFactory(failed=True, type="test.b")
    done = JobFactory(succeeded=True, type="test.a")

    answer = jobqueue_command("retry", "--all-matching", "--type", "test.a", reply="y")

    assert jobqueue_command.asked == ["3 jobs will be retried. Go on? [y/N] "]
    assert answer.text == "3 jobs retried, 0 skipped.\n"
    assert {status_of(job) for job in mine} == {JobStatus.PENDING}
    assert (status_of(other), status_of(done)) == (JobStatus.FAILED, JobStatus.SUCCEEDED)


@pytest.mark.parametrize("reply", ["", "n", "yep", None])
def test_without_a_yes_nothing_changes(jobqueue_command, reply):
    job = JobFactory()

    answer = jobqueue_command("cancel", "--all-matching", reply=reply)

    assert answer.error.returncode == 1
    assert answer.refusal == (
        "Nobody is there to be asked. Give --yes to go on."
        if reply is None
        else "Nothing was changed."
    )
    assert status_of(job) == JobStatus.PENDING


@pytest.mark.parametrize("option", ["--yes", "--no-input", "--noinput"])
def test_a_script_need_not_be_asked(jobqueue_command, option):
    job = JobFactory()

    answer = jobqueue_command("cancel", "--all-matching", option)

    assert (answer.error, jobqueue_command.asked) == (None, [])
    assert status_of(job) == JobStatus.CANCELLED


def test_filters_without_all_matching_are_misused(jobqueue_command):
    job = JobFactory(failed=True)

    for words in (["--type", job.type], []):
        answer = jobqueue_command("retry", *words)
        assert answer.error.returncode == 2
        assert "--all-matching" in answer.refusal
    both = jobqueue_command("retry", str(job.pk), "--all-matching")
    assert both.error.returncode == 2
    assert status_of(job) == JobStatus.FAILED


def test_a_limit_takes_the_oldest_and_reports_the_rest(jobqueue_command, monkeypatch):
    monkeypatch.setattr(bulk, "BULK_BATCH", 2)
    jobs = [JobFactory() for _ in range(8)]

    answer = jobqueue_command("cancel", "--all-matching", "--limit", "5", "--yes")

    assert answer.text == "5 jobs cancelled, 0 skipped, 3 remaining.\n"
    assert [status_of(job) for job in jobs] == ["cancelled"] * 5 + ["pending"] * 3


def test_the_question_says_when_a_limit_leaves_some(jobqueue_command):
    for _ in range(3):
        JobFactory()

    jobqueue_command("cancel", "--all-matching", "--limit", "2", reply="n")

    assert jobqueue_command.asked == ["The oldest 2 of 3 jobs will be cancelled. Go on? [y/N] "]


def test_of_two_jobs_with_one_key_the_second_is_skipped(jobqueue_command):
    first, second = (JobFactory(failed=True, dedup_key="one") for _ in range(2))

    answer = jobqueue_command("retry", "--all-matching", "--yes")

    assert answer.text == "1 job retried, 1 skipped (1 whose dedup key is taken).\n"
    assert (status_of(first), status_of(second)) == (JobStatus.PENDING, JobStatus.FAILED)


def test_nothing_that_matches_is_refused_before_a_question(jobqueue_command):
    JobFactory(succeeded=True)

    answer = jobqueue_command("retry", "--all-matching")

    assert answer.refusal == "No job matches that can be retried."
    assert jobqueue_command.asked == []


def test_reap_returns_stuck_jobs_at_once_and_leaves_live_ones(jobqueue_command):
    stuck, live = expired(), claimed()

    answer = jobqueue_command("reap", "--all-matching", "--yes")

    assert answer.text == "1 job reset, 0 skipped.\n"
    assert (status_of(stuck), status_of(live)) == (JobStatus.PENDING, JobStatus.RUNNING)
    assert JobAttempt.objects.get().outcome == "reaped"
    refused = jobqueue_command("reap", str(live.pk))
    assert "only stuck jobs are" in refused.refusal


def test_a_reaped_job_without_attempts_left_fails_and_is_announced(jobqueue_command):
    job = expired(attempts=3, max_attempts=3)
    heard = []
    job_settled.connect(receiver := lambda event, **_: heard.append(event.job_id))
    try:
        jobqueue_command("reap", str(job.pk))
    finally:
        job_settled.disconnect(receiver)

    assert status_of(job) == JobStatus.FAILED
    assert heard == [job.pk]


# purge


def test_purge_deletes_what_ended_long_ago_after_a_yes(jobqueue_command):
    old = now() - timedelta(days=31)
    gone = JobFactory(succeeded=True, finished_at=old)
    kept = [JobFactory(failed=True), JobFactory(created_at=old, ready_at=old)]

    answer = jobqueue_command("purge", "--older-than", "30d", reply="yes")

    assert jobqueue_command.asked == ["1 job will be deleted. Go on? [y/N] "]
    assert answer.text == "1 job deleted.\n"
    assert not Job.objects.filter(pk=gone.pk).exists()
    assert Job.objects.filter(pk__in=[job.pk for job in kept]).count() == 2


def test_purge_without_an_age_deletes_what_the_nightly_purge_would(jobqueue_command, monkeypatch):
    monkeypatch.setattr(registry, "_handlers", {})
    job_handler("test.short", history_retention=60)(lambda job: None)
    job_handler("test.long", history_retention=timedelta(days=99))(lambda job: None)
    for days in (1, 31):
        for name in ("test.short", "test.long", "test.unknown"):
            JobFactory(type=name, succeeded=True, finished_at=now() - timedelta(days=days))

    answer = jobqueue_command("purge", reply="yes")

    assert jobqueue_command.asked == ["3 jobs will be deleted. Go on? [y/N] "]
    assert answer.text == "3 jobs deleted.\n"
    assert sorted(Job.objects.values_list("type", flat=True)) == [
        "test.long",
        "test.long",
        "test.unknown",
    ]


def test_an_age_counts_for_every_type(jobqueue_command, monkeypatch):
    monkeypatch.setattr(registry, "_handlers", {})
    job_handler("test.long", history_retention=timedelta(days=99))(lambda job: None)
    JobFactory(type="test.long", succeeded=True, finished_at=now() - timedelta(days=31))

    answer = jobqueue_command("purge", "--older-than", "30d", "--yes")

    assert answer.text == "1 job deleted.\n"


def test_purge_without_an_age_is_refused_while_handlers_are_missing(jobqueue_command, monkeypatch):
    failure = discovery.FailedImport("shop.jobs", "No module named 'shap'", "")
    monkeypatch.setattr(discovery, "_failures", [failure])
    JobFactory(succeeded=True, finished_at=now() - timedelta(days=31))

    refused = jobqueue_command("purge", "--yes")

    assert "shop.jobs could not be imported: No module named 'shap'. How long" in refused.refusal
    assert refused.error.returncode == 1
    assert Job.objects.count() == 1
    assert jobqueue_command("purge", "--yes", "--older-than", "30d").text == "1 job deleted.\n"


def test_purge_of_nothing_is_no_failure_and_no_question(jobqueue_command):
    answer = jobqueue_command("purge", "--older-than", "30d", "--format", "json")

    assert (answer.said, answer.error) == ({"deleted": 0}, None)


def test_purge_without_a_yes_deletes_nothing(jobqueue_command):
    JobFactory(succeeded=True, finished_at=now() - timedelta(days=31))

    assert jobqueue_command("purge", "--older-than", "30d").error.returncode == 1
    assert Job.objects.count() == 1


@pytest.mark.parametrize("wrong", ["30", "d", "1y", "-1d", "1.5d", "999999999w"])
def test_an_age_that_is_none_is_misused(jobqueue_command, wrong):
    refusal = jobqueue_command("purge", f"--older-than={wrong}").refusal

    assert f"{wrong!r}: expected a number and a unit of s, m, h, d or w" in refusal
