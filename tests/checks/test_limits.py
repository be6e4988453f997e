"""Durations that contradict each other."""

from datetime import timedelta

import pytest
from django.test import override_settings

from django_jobqueue import job_handler, registry
from tests.checks.looking import checked, ids_in


@pytest.fixture
def slow_type():
    before = registry.handlers()

    def register(**profile):
        job_handler("test.slow", **profile)(lambda job: None)

    yield register
    registry._handlers.clear()
    registry._handlers.update(before)


def said(**jobqueue):
    with override_settings(JOBQUEUE=jobqueue):
        return checked()


@pytest.mark.parametrize(
    ("jobqueue", "words"),
    [
        ({"RETRY_BASE": 120}, 'JOBQUEUE["RETRY_MAX"] is 60 s, and ["RETRY_BASE"] is 120 s'),
        (
            {"RATE_LIMIT_MAX": timedelta(seconds=10)},
            'JOBQUEUE["RATE_LIMIT_MAX"] is 10 s, and ["RATE_LIMIT_BASE"] is 30 s',
        ),
    ],
)
def test_a_longest_wait_below_the_first_is_w009(jobqueue, words):
    text = said(**jobqueue)

    assert ids_in(text) == ["W009"]
    assert words in text


def test_waits_that_are_equal_are_fine():
    assert ids_in(said(RETRY_BASE=60, RETRY_MAX=60, RATE_LIMIT_BASE=5, RATE_LIMIT_MAX=5)) == []


def test_no_cap_and_no_timeout_make_a_lease_of_an_hour_w010():
    text = said(LEASE_CAP=None, JOB_TIMEOUT=0, STUCK_THRESHOLD=3600)

    assert ids_in(text) == ["W010"]
    assert 'JOBQUEUE["LEASE_CAP"] is None, so leases last up to 1:00:00' in text


def test_no_cap_and_a_slow_type_are_w010_and_name_it(slow_type):
    slow_type(max_runtime=timedelta(hours=5))

    text = said(LEASE_CAP=None)

    assert ids_in(text) == ["W010"]
    assert "5:01:00 (test.slow)" in text


def test_a_capped_lease_is_never_w010(slow_type):
    slow_type(max_runtime=timedelta(hours=5))

    assert ids_in(said()) == []
    assert ids_in(said(LEASE_CAP=3600)) == ["W010"]


def test_a_threshold_below_the_lease_is_w011():
    text = said(STUCK_THRESHOLD=60)

    assert ids_in(text) == ["W011"]
    assert 'JOBQUEUE["STUCK_THRESHOLD"] is 60 s, shorter than a lease, 90 s' in text
    assert ids_in(said(STUCK_THRESHOLD=90)) == []


def test_a_grace_that_no_job_can_use_is_w012():
    text = said(SHUTDOWN_GRACE=1800)

    assert ids_in(text) == ["W012"]
    assert "is 1800 s, and no job may run longer than 600 s" in text


def test_a_grace_that_one_type_can_use_is_fine(slow_type):
    slow_type(max_runtime=3600)

    assert ids_in(said(SHUTDOWN_GRACE=1800)) == []


def test_a_grace_beside_jobs_without_a_ceiling_is_fine():
    assert ids_in(said(SHUTDOWN_GRACE=1800, JOB_TIMEOUT=0)) == []


def test_the_default_grace_beside_short_jobs_is_fine():
    """Nobody asked for it."""
    assert ids_in(said(JOB_TIMEOUT=10)) == []


def test_limits_wait_until_every_value_can_be_used():
    assert ids_in(said(RETRY_BASE=120, RETRY_MAX="soon")) == ["E002"]
