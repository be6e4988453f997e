"""Durations, activity and totals over a window."""

from datetime import timedelta
from statistics import mean, quantiles

import pytest
from django.db import connection

from django_jobqueue import insights
from django_jobqueue.exceptions import InvalidWindow
from django_jobqueue.models import Job, JobStatsRollup
from tests.insights.rows import finished, now

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def test_of_nothing_nothing_is_known():
    found = insights.overview()

    assert found.durations.overall is None
    assert found.durations.by_type == {}
    assert set(found.durations.buckets) == {0}
    assert found.now.oldest_due_age is None
    assert (found.etas, found.lifetime) == ({}, {})
    assert found.failures.classes == []


def test_percentiles_are_those_of_the_samples_overall_and_by_type():
    for seconds in (1, 2, 3, 4, 100):
        finished(seconds, type="a")
    finished(7, type="b")

    found = insights.durations()

    a, b = found.by_type["a"], found.by_type["b"]
    assert (a.samples, a.mean, a.p50) == (5, pytest.approx(22), pytest.approx(3))
    assert a.p95 == pytest.approx(quantiles([1, 2, 3, 4, 100], n=20, method="inclusive")[-1])
    assert (b.samples, b.p50, b.p95) == (1, pytest.approx(7), pytest.approx(7))
    assert found.overall.samples == 6
    assert found.overall.p50 == pytest.approx(3.5)
    assert found.overall.mean == pytest.approx(mean([1, 2, 3, 4, 100, 7]))


def test_percentiles_among_many_like_samples_are_exact_to_one_per_cent():
    runs = [5 + n / 1000 for n in range(400)]
    for seconds in runs:
        finished(seconds)

    found = insights.durations().overall

    cuts = quantiles(runs, n=20, method="inclusive")
    assert found.p50 == pytest.approx(cuts[9], rel=0.01)
    assert found.p95 == pytest.approx(cuts[18], rel=0.01)
    assert found.mean == pytest.approx(mean(runs))


def test_parts_of_a_second_count():
    finished(0.25)
    finished(0.000_75)

    found = insights.durations()

    assert found.overall.p50 == pytest.approx((0.25 + 0.000_75) / 2)
    assert found.buckets[0] == 1
    assert found.buckets[3] == 1  # from 0.1 s to 0.3 s


def test_only_jobs_that_succeeded_in_the_window_are_samples():
    finished(1)
    finished(5, ago=timedelta(days=8))
    finished(5, failed=True)
    finished(5, cancelled=True)
    Job.objects.filter(pk=finished(5).pk).update(started_at=None)
    finished(-5)  # Clocks went back: no duration.

    assert insights.durations().overall.samples == 1
    assert insights.durations(timedelta(days=9)).overall.samples == 2


def test_the_last_hour_is_counted_overall_and_by_type():
    finished(1, type="a")
    finished(1, type="a", ago=2 * HOUR)
    finished(1, type="b", ago=2 * HOUR)

    found = insights.durations()

    assert found.overall.last_hour == 1
    assert {name: spread.last_hour for name, spread in found.by_type.items()} == {"a": 1, "b": 0}


@pytest.mark.parametrize("window", [timedelta(days=91), timedelta(0), -HOUR])
@pytest.mark.parametrize(
    "ask", [insights.durations, insights.activity, insights.failures, insights.overview]
)
def test_a_window_that_is_not_covered_is_refused_by_its_value(ask, window):
    with pytest.raises(InvalidWindow, match=str(window)):
        ask(window)


def test_a_window_is_a_timedelta():
    with pytest.raises(InvalidWindow, match="window is 7; expected a timedelta"):
        insights.durations(7)


def test_ninety_days_are_covered():
    finished(1, ago=timedelta(days=89))

    assert insights.durations(timedelta(days=90)).overall.samples == 1


def test_activity_counts_what_ended_in_each_slice():
    finished(1, ago=timedelta(minutes=30))
    finished(1, ago=timedelta(minutes=90))
    finished(1, failed=True, ago=timedelta(minutes=95))
    finished(1, cancelled=True, ago=timedelta(hours=23, minutes=50))
    finished(1, ago=timedelta(hours=25))

    found = insights.activity(timedelta(hours=24))

    assert (found.step, len(found.slices)) == (timedelta(minutes=30), 48)
    assert (found.succeeded, found.failed) == (2, 1)
    assert found.slices[0].cancelled == 1
    assert sum(part.succeeded for part in found.slices[-4:]) == 2
    assert found.slices[-1].start <= now() - timedelta(minutes=30)


def test_a_window_has_at_most_sixty_slices():
    for hours in (1, 24, 7 * 24, 30 * 24, 90 * 24, 31, 7.3):
        found = insights.activity(timedelta(hours=hours))
        assert 30 <= len(found.slices) <= 60


def test_totals_count_what_is_kept_and_what_was_purged():
    finished(1, type="a")
    finished(1, type="a", failed=True, ago=timedelta(days=200))
    finished(1, type="b", cancelled=True)
    JobStatsRollup.objects.create(type="a", succeeded_count=10, failed_count=2, cancelled_count=1)
    JobStatsRollup.objects.create(type="old", succeeded_count=3)

    totals = {
        name: (some.succeeded, some.failed, some.cancelled)
        for name, some in insights.lifetime().items()
    }

    assert totals == {"a": (11, 3, 1), "b": (0, 0, 1), "old": (3, 0, 0)}


def test_a_purge_changes_no_total():
    finished(1, ago=timedelta(days=40))
    finished(1)
    before = insights.lifetime()

    assert Job.objects.purge(timedelta(days=30)) == 1
    assert insights.lifetime() == before


def test_a_purge_that_commits_in_between_is_not_counted_twice():
    finished(1, ago=timedelta(days=2), type="a")
    finished(1, ago=timedelta(days=2), type="a", failed=True)
    finished(1, type="a", cancelled=True)
    purged = []

    def purge_before_the_purged_are_read(execute, sql, *rest):
        if "jobstatsrollup" in sql and not purged:
            purged.append(True)
            Job.objects.purge(timedelta(days=1))
        return execute(sql, *rest)

    with connection.execute_wrapper(purge_before_the_purged_are_read):
        found = insights.lifetime()

    assert JobStatsRollup.objects.get().succeeded_count == 1
    assert found == {"a": insights.Totals(succeeded=1, failed=1, cancelled=1)}
