"""Is work done in time?"""

from datetime import timedelta

import pytest

from django_jobqueue.health import queue
from django_jobqueue.models import Job
from tests.factories import JobFactory, WorkerProcessFactory
from tests.managers.rows import claimed, now, saved, unsaved
from tests.marks import on_postgresql

pytestmark = pytest.mark.django_db(transaction=True)


def asked(**thresholds):
    return queue(**({"max_overdue": 600, "max_stuck": 0, "max_failing": 0.5} | thresholds))


def codes(report):
    return [problem.code for problem in report.problems]


def waiting(seconds, **columns):
    moment = now() - timedelta(seconds=seconds)
    return JobFactory(created_at=moment, ready_at=moment, **columns)


def test_an_empty_queue_is_healthy_and_measures_nothing():
    report = asked()

    assert report.healthy
    assert report.measures == {
        "overdue_seconds": None,
        "stuck": 0,
        "ended": 0,
        "failed": 0,
        "failing": None,
    }


def test_a_job_that_waits_too_long_is_overdue():
    waiting(601)
    waiting(10)

    report = asked()

    assert codes(report) == ["overdue"]
    assert 601 <= report.measures["overdue_seconds"] < 630
    assert asked(max_overdue=900).healthy


def test_a_scheduled_job_that_nobody_promotes_is_overdue_from_its_time():
    moment = now() - timedelta(seconds=700)
    JobFactory(scheduled_for=moment, created_at=moment - timedelta(days=3), ready_at=moment)

    report = asked()

    assert codes(report) == ["overdue"]
    assert 700 <= report.measures["overdue_seconds"] < 730


def test_a_job_of_the_future_is_not_overdue():
    JobFactory(scheduled=True)

    assert asked().measures["overdue_seconds"] is None


@pytest.mark.parametrize("kind", ["queue", "type"])
def test_a_paused_job_is_not_overdue(kind):
    waiting(5000, queue="imports", type="test.note")
    Job.objects.pause(kind, "imports" if kind == "queue" else "test.note")

    assert asked().healthy
    assert asked().measures["overdue_seconds"] is None


def test_a_job_that_stays_stuck_counts_once_it_did_so_for_long():
    claimed(lease_expires_at=now() - timedelta(seconds=300))
    claimed(lease_expires_at=now() - timedelta(seconds=700))

    report = asked()

    assert codes(report) == ["stuck"]
    assert report.measures["stuck"] == 1
    assert asked(max_stuck=1).healthy
    assert asked(max_overdue=100).measures["stuck"] == 2


def ended(succeeded, failed, age=timedelta(minutes=30)):
    saved(*(unsaved("succeeded", age=age) for _ in range(succeeded)))
    saved(*(unsaved("failed", age=age) for _ in range(failed)))


def test_many_failures_are_failing():
    ended(9, 11)

    report = asked()

    assert codes(report) == ["failing"]
    assert (report.measures["ended"], report.measures["failed"]) == (20, 11)
    assert report.measures["failing"] == 0.55
    assert asked(max_failing=0.55).healthy


def test_few_jobs_say_nothing_about_a_share():
    ended(0, 19)

    report = asked()

    assert report.healthy
    assert report.measures["failing"] is None


def test_failures_of_long_ago_and_cancelled_jobs_do_not_count():
    ended(0, 30, age=timedelta(minutes=61))
    saved(*(unsaved("cancelled") for _ in range(30)))
    ended(20, 0)

    assert asked().measures["failing"] == 0


@on_postgresql
def test_it_answers_beside_a_transaction_that_holds_every_row():
    from django.db import transaction

    ended(9, 11)
    waiting(700)

    with transaction.atomic():
        list(Job.objects.select_for_update())
        assert codes(asked()) == ["overdue", "failing"]


def a_worker(types, queues=None):
    WorkerProcessFactory(types=types, queues=queues)


def overdue_text():
    (problem,) = asked().problems
    return problem.text


def test_the_oldest_due_job_is_named_by_type_and_queue():
    a_worker(["test.note", "test.newer"])
    waiting(700, type="test.newer")
    waiting(5000, type="test.note", queue="imports")

    text = overdue_text()

    assert text.startswith("The oldest due job (test.note of the queue imports) has waited 50")
    assert text.endswith(" s, over 600 s.")


def test_an_overdue_job_without_any_worker_says_so():
    waiting(5000, type="test.note")

    assert overdue_text().endswith(
        "over 600 s: no worker is alive. Run: python manage.py run_jobworker."
    )


def test_an_overdue_job_of_a_type_that_no_worker_runs_says_so_with_the_remedy():
    a_worker(["test.note"])
    waiting(5000, type="reports.not known")

    assert overdue_text().endswith(
        "over 600 s: no worker runs reports.not known: register its handler, or cancel them: "
        "python manage.py jobqueue cancel --all-matching --type 'reports.not known'."
    )


def test_an_overdue_job_of_a_queue_that_no_worker_takes_says_so_with_the_remedy():
    a_worker(["test.note"], ["default"])
    waiting(5000, type="test.note", queue="imports")

    assert overdue_text().endswith(
        "over 600 s: no worker takes test.note from the queue imports: run one that does: "
        "python manage.py run_jobworker --queues imports."
    )


def test_what_strangers_see_names_no_type():
    waiting(5000, type="secret.type", queue="private")

    report = asked()

    assert "secret.type" in str(report.full())
    assert "secret" not in str(report.public())
    assert "private" not in str(report.public())
