from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import Job
from tests.claims import claim_of, tokens
from tests.factories import JobFactory, QueueControlFactory

pytestmark = pytest.mark.django_db

STATES = ("ready", "scheduled", "due", "running", "succeeded", "failed", "cancelled")


@pytest.fixture
def one_each():
    """A job in each state, by the name of the state."""
    return {state: JobFactory(**({} if state == "ready" else {state: True})) for state in STATES}


@pytest.mark.parametrize(
    ("filter_name", "found"),
    [
        ("pending", {"ready", "scheduled", "due"}),
        ("ready", {"ready"}),
        ("scheduled", {"scheduled", "due"}),
        ("due", {"due"}),
        ("running", {"running"}),
        ("active", {"ready", "scheduled", "due", "running"}),
        ("terminal", {"succeeded", "failed", "cancelled"}),
    ],
)
def test_a_filter_finds_the_jobs_of_its_word(one_each, filter_name, found):
    jobs = getattr(Job.objects.all(), filter_name)()

    assert set(jobs) == {one_each[state] for state in found}


def test_due_may_be_asked_about_another_moment(one_each):
    later = timezone.now() + timedelta(hours=2)

    assert set(Job.objects.due(later)) == {one_each["due"], one_each["scheduled"]}


def test_a_claim_finds_the_job_that_it_holds(one_each):
    running = one_each["running"]

    assert list(Job.objects.holding(claim_of(running))) == [running]
    assert not Job.objects.holding(claim_of(running)._replace(token=tokens()[0])).exists()
    assert list(Job.objects.claimed_with([*tokens(2), running.claim_token])) == [running]


def test_jobs_are_found_by_their_subject():
    job = JobFactory(subject_type="report", subject_id="7")
    JobFactory(subject_type="report", subject_id="8")
    JobFactory()

    assert list(Job.objects.about("report", 7)) == [job]


def test_takeable_jobs_are_ready_wanted_and_not_paused(one_each):
    JobFactory(type="test.fail")
    JobFactory(queue="paused")
    other = JobFactory(queue="other")
    QueueControlFactory(kind="queue", name="paused")

    assert set(Job.objects.takeable(["test.echo"])) == {one_each["ready"], other}
    assert list(Job.objects.takeable(["test.echo"], ["other", "paused"])) == [other]
