"""Estimates for single jobs against what then happens in a simulated queue."""

from statistics import mean, median

import pytest

from django_jobqueue.insights import Basis, Forecast
from django_jobqueue.insights.reading import Reading
from django_jobqueue.models import Job, WorkerProcess
from tests.insights.rows import now
from tests.insights.simulation import Simulation

pytestmark = pytest.mark.django_db

SAMPLES = 100
SEEDS = range(8)


class Situation:
    """A simulation of which 100 jobs are done, its rows, and a forecast made at that moment."""

    def __init__(self, seed):
        self.simulation = Simulation(seed)
        self.moment = self.simulation.when_finished(SAMPLES)
        at = now()
        self.simulation.write(self.moment, at)
        self.forecast = Forecast(Reading("default", at))
        rows = Job.objects.in_bulk()
        self.waiting = [
            (job, rows[job.id])
            for job in self.simulation.jobs
            if job.arrives <= self.moment < job.starts
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_half_of_the_waits_are_estimated_within_30_per_cent(seed):
    seen = Situation(seed)
    estimates = [(seen.forecast.eta(row), job) for job, row in seen.waiting[::3]]

    assert len(estimates) > 60
    assert {estimate.basis for estimate, _ in estimates} == {Basis.LIVE}
    for estimated, actual in (("starts_in", "starts"), ("seconds", "ends")):
        errors = []
        for estimate, job in estimates:
            truth = getattr(job, actual) - seen.moment
            errors.append(abs(getattr(estimate, estimated) - truth) / truth)
        assert median(errors) < 0.3


def test_the_position_is_the_number_of_waiting_jobs_that_start_before():
    seen = Situation(seed=1)

    for job, row in seen.waiting[::10]:
        before = sum((one.priority, one.id) < (job.priority, job.id) for one, _row in seen.waiting)
        assert seen.forecast.position(row) == before


def test_most_jobs_end_between_the_low_and_the_high_estimate():
    shares = []
    for seed in SEEDS:
        Job.objects.all().delete()
        WorkerProcess.objects.all().delete()
        seen = Situation(seed)
        inside = []
        for job, row in seen.waiting[::6]:
            estimate = seen.forecast.eta(row)
            inside.append(estimate.low <= job.ends - seen.moment <= estimate.high)
        shares.append(mean(inside))

    assert mean(shares) > 0.6


def test_a_running_job_is_given_no_less_than_nothing_and_no_more_than_it_may_take():
    seen = Situation(seed=1)
    rows = Job.objects.running()
    left = [seen.forecast.eta(row).seconds for row in rows]

    assert len(left) == seen.simulation.slots
    assert all(0 < seconds < 400 for seconds in left)
