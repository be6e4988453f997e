"""When the work of a type, or one job, will be done, and on what basis."""

from datetime import timedelta

import pytest

from django_jobqueue import insights
from django_jobqueue.insights import Basis
from django_jobqueue.insights.recent import Runs
from django_jobqueue.models import Job, JobStatsRollup
from tests.factories import JobFactory, QueueControlFactory
from tests.insights.rows import history, now, worker

pytestmark = pytest.mark.django_db


def waiting(count=1, job_type="a", **values):
    return [JobFactory(type=job_type, **values) for _ in range(count)]


def test_a_type_takes_its_jobs_times_the_mean_over_its_live_slots():
    history(30, seconds=10, type="a")
    waiting(5)
    waiting(1, running=True)
    worker("a", slots=2)
    worker("a", "b", slots=2, pid=2)
    worker("b", slots=50, pid=3)

    estimate = insights.etas()["a"]

    assert estimate.seconds == pytest.approx(6 * 10 / 4)
    assert (estimate.basis, estimate.slots, estimate.samples) == (Basis.LIVE, 4, 30)
    assert "30 finished runs" in estimate.explanation
    assert "4 live slots" in estimate.explanation
    assert insights.eta("a") == estimate


def test_slots_count_only_where_the_worker_takes_the_queue_of_the_jobs():
    history(30, type="a")
    waiting(2, queue="mail")
    worker("a", slots=3, queues=["mail", "other"])
    worker("a", slots=9, queues=["default"], pid=2)

    assert insights.etas()["a"].slots == 3


def test_without_a_live_worker_one_is_assumed_and_said(jobqueue):
    jobqueue(WORKER_CONCURRENCY=4)
    history(30, seconds=10, type="a")
    waiting(2)

    estimate = insights.etas()["a"]

    assert (estimate.basis, estimate.seconds) == (Basis.PARTIAL, pytest.approx(5))
    assert "No live worker runs it: one with 4 slots is assumed." in estimate.explanation


def test_a_few_samples_are_only_a_partial_basis():
    history(insights.ENOUGH_SAMPLES - 1, type="a")
    waiting()
    worker("a")

    estimate = insights.etas()["a"]

    assert estimate.basis is Basis.PARTIAL
    assert "So few runs say little." in estimate.explanation


def test_without_history_nothing_is_said():
    (job,) = waiting()
    worker("a")

    for estimate in (insights.etas()["a"], insights.eta(job), insights.eta("a")):
        assert (estimate.basis, estimate.seconds) == (Basis.NONE, None)
        assert "No run of this type" in estimate.explanation


def test_the_purged_runs_of_a_rare_type_tell_its_mean():
    JobStatsRollup.objects.create(type="a", duration_sum=500.0, duration_samples=100)
    (job,) = waiting()
    worker("a")

    assert insights.eta(job).seconds == pytest.approx(5)


def test_the_backlog_is_gone_when_all_work_is_done_on_the_slots_that_types_share():
    history(30, seconds=10, type="a")
    history(30, seconds=20, type="b")
    waiting(4)
    waiting(4, "b")
    worker("a", "b", slots=2)

    assert insights.overview().backlog_seconds == pytest.approx((40 + 80) / 2)

    waiting(1, "nobody knows it")
    assert insights.overview().backlog_seconds is None


def test_a_job_waits_for_those_before_it_and_for_the_running_ones():
    history(50, seconds=10, type="a")
    worker("a", slots=2)
    at = now()
    for seconds in (4, 8):
        JobFactory(
            type="a", running=True, worker="web:1:0", started_at=at - timedelta(seconds=seconds)
        )
    jobs = waiting(3)

    starts = [insights.eta(job).starts_in for job in jobs]

    # The slots are free in 2 s and in 6 s; each job keeps one for 10 s.
    assert starts == pytest.approx([2, 6, 12], abs=0.6)
    assert insights.eta(jobs[2]).seconds == pytest.approx(22, abs=0.6)


def test_a_job_before_that_other_workers_may_take_costs_its_share():
    history(50, seconds=10, type="a")
    history(50, seconds=10, type="b")
    worker("a", "b", slots=1)
    worker("b", slots=3, pid=2)
    waiting(8, "b")
    (job,) = waiting()

    assert insights.eta(job).starts_in == pytest.approx(8 * 10 / 4)


def test_a_running_job_takes_what_longer_runs_took_beyond_its_time():
    runs = Runs((1.0, 2.0, 10.0, 20.0))

    assert runs.remaining(0.0) == pytest.approx(8.25)
    assert runs.remaining(2.0) == pytest.approx(13.0)
    assert 0 < runs.remaining(25.0) < 8.25


def test_who_runs_already_starts_now():
    history(30, seconds=10, type="a")
    (job,) = waiting(1, running=True)

    estimate = insights.eta(job)

    assert estimate.starts_in == 0
    assert estimate.seconds == pytest.approx(10, abs=0.6)


def test_a_scheduled_job_starts_when_its_time_comes():
    history(30, seconds=10, type="a")
    worker("a")
    (job,) = waiting(1, scheduled_for=now() + timedelta(hours=1))

    estimate = insights.eta(job)

    assert estimate.starts_in == pytest.approx(3600, abs=2)
    assert estimate.basis is Basis.PARTIAL
    assert "waits for its time" in estimate.explanation


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_a_job_that_ended_has_neither_an_estimate_nor_a_position(state):
    (job,) = waiting(1, **{state: True})

    assert insights.eta(job) is None
    assert insights.position(job) is None


def test_the_position_counts_more_urgent_and_older_jobs_of_the_same_workers():
    worker("a", "b", queues=["default"])
    worker("c", pid=2)
    older, job, younger = waiting(3)
    waiting(1, "b", priority=-5)
    waiting(1, "b", priority=5)
    waiting(1, "b", queue="mail", priority=-5)
    waiting(1, "c", priority=-5)
    waiting(1, "a", priority=-5, scheduled_for=now() + timedelta(hours=1))

    assert insights.position(older) == 1
    assert insights.position(job) == 2
    assert insights.position(younger) == 3


def test_without_a_worker_the_position_counts_every_ready_job_before():
    waiting(1, "c", priority=-5)
    (job,) = waiting()

    assert insights.position(job) == 1


def test_paused_jobs_are_before_nobody_and_have_no_position():
    worker("a", "b")
    (held,) = waiting(1, "b", priority=-5)
    (job,) = waiting()
    QueueControlFactory(kind="type", name="b")

    assert insights.position(job) == 0
    assert insights.position(held) is None
    assert insights.eta(held) is None


def test_behind_more_jobs_than_are_looked_at_an_estimate_is_at_least(monkeypatch):
    from django_jobqueue.insights import forecast

    monkeypatch.setattr(forecast, "MOST_AHEAD", 3)
    history(30, seconds=10, type="a")
    worker("a", slots=1)
    job = waiting(6)[-1]

    estimate = insights.eta(job)

    assert insights.position(job) == 3
    assert (estimate.at_least, estimate.basis, estimate.high) == (True, Basis.PARTIAL, None)
    assert estimate.seconds == pytest.approx(40)
    assert "More jobs wait" in estimate.explanation


def test_a_job_is_looked_for_where_it_came_from():
    (job,) = waiting()
    fetched = Job.objects.using("default").get(pk=job.pk)

    assert insights.position(fetched, using="default") == 0
