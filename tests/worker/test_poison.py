"""Jobs that take their worker's process along."""

import pytest

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.processes import eventually

pytestmark = pytest.mark.usefixtures("transactional_db")

HARD = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp.hard"]'
QUICK = {"LEASE_CAP": 1, "REAPER_INTERVAL": 0.5}
MOST = 3


def terminal(job):
    return Job.objects.terminal().filter(pk=job.pk).exists()


def assert_is_poisoned(job, starts):
    job.refresh_from_db()
    assert starts == MOST
    assert (job.status, job.attempts, job.max_attempts) == (JobStatus.FAILED, MOST, MOST)
    assert "died" in job.last_error
    assert f"attempt {MOST} of {MOST}" in job.last_error
    history = list(job.attempt_history.order_by("number"))
    assert [attempt.number for attempt in history] == [1, 2, 3]
    assert {attempt.outcome for attempt in history} == {SettleOutcome.REAPED}
    assert all("died" in attempt.message for attempt in history)


def test_each_starts_as_often_as_it_may_and_then_fails_while_others_are_done(site, notebook):
    """Two of them, one that exits and one that is killed, under one supervisor."""
    poison = [
        Job.objects.enqueue("hard.die", {**notebook.payload, "how": how})
        for how in ("exit", "signal")
    ]
    with site(HARD, **QUICK).worker("--processes", "2", "--concurrency", "1") as worker:
        for job in poison:
            eventually(lambda job=job: terminal(job), f"it runs for ever: {worker.errors}", 60)
        healthy = Job.objects.enqueue("test.echo")
        eventually(lambda: terminal(healthy), "the worker did not recover")
        worker.terminate()

        assert worker.exit_code() == 0
    for job in poison:
        assert_is_poisoned(job, notebook.ids().count(str(job.pk)))
    healthy.refresh_from_db()
    assert (healthy.status, healthy.attempts) == (JobStatus.SUCCEEDED, 1)


def test_workers_started_one_after_the_other_obey_the_row_and_not_their_own_settings(
    site, notebook
):
    """The claim wrote how often it may run, so a worker that reaps need not know the type."""
    job = Job.objects.enqueue("hard.die", {**notebook.payload, "how": "signal"})
    for number in range(1, MOST + 1):
        with site(HARD, **QUICK).worker("--concurrency", "1") as worker:
            eventually(lambda number=number: len(notebook.ids()) == number, "it did not start")
            assert worker.exit_code() == -9
    with site(**QUICK, MAX_ATTEMPTS=10).worker():
        eventually(lambda: terminal(job), "it was not failed")

    assert_is_poisoned(job, len(notebook.ids()))
