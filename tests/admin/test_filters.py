"""The filters of the list, and that an address can ask about nothing else."""

import itertools
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue.admin import choices
from django_jobqueue.ids import last_id_until
from django_jobqueue.models import JobStatsRollup
from tests.admin.conftest import SECRET, job_list
from tests.factories import JobFactory, QueueControlFactory, ScheduleFactory

LONG_AGO = timedelta(days=60)
numbers = itertools.count()


def found(client, **query):
    response = job_list(client, **query)
    assert response.status_code == 200
    return {job.pk for job in response.context["cl"].result_list}


def offered(response, name):
    (spec,) = (s for s in response.context["cl"].filter_specs if s.parameter_name == name)
    return [value for value, _label in spec.lookup_choices]


@pytest.fixture
def by_state(viewer):
    earlier = timezone.now() - timedelta(hours=5)
    return {
        "pending": JobFactory(),
        "scheduled": JobFactory(scheduled=True),
        "running": JobFactory(running=True),
        "stuck": JobFactory(running=True, started_at=earlier, lease_expires_at=earlier),
        "succeeded": JobFactory(succeeded=True),
        "failed": JobFactory(failed=True),
        "cancelled": JobFactory(cancelled=True),
    }


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("pending", {"pending", "scheduled"}),
        ("scheduled", {"scheduled"}),
        ("running", {"running", "stuck"}),
        ("stuck", {"stuck"}),
        ("succeeded", {"succeeded"}),
        ("failed", {"failed"}),
        ("cancelled", {"cancelled"}),
    ],
)
def test_a_state_shows_the_jobs_in_it(viewer, by_state, state, names):
    assert found(viewer, status=state) == {by_state[name].pk for name in names}


def test_every_state_is_offered(viewer, by_state):
    assert offered(job_list(viewer), "status") == list(by_state)


@pytest.mark.parametrize("name", ["type", "queue"])
def test_a_type_and_a_queue_show_the_jobs_with_that_name_exactly(viewer, name):
    job = JobFactory(**{name: "mail"})
    JobFactory(**{name: "mail.more"})

    assert found(viewer, **{name: "mail"}) == {job.pk}
    assert found(viewer, **{name: "never"}) == set()


def test_filters_are_combined(viewer):
    job = JobFactory(failed=True, type="test.echo", queue="mail")
    JobFactory(failed=True, type="test.echo")
    JobFactory(type="test.echo", queue="mail")

    query = {"status": "failed", "type": "test.echo", "queue": "mail", "activity": "hour"}
    assert found(viewer, **query) == {job.pk}


def made(when, **values):
    """A job with the id that a process made at that time."""
    pk = UUID(int=last_id_until(when.timestamp()).int - next(numbers))
    return JobFactory(pk=pk, created_at=when, **values)


def test_activity_is_the_end_of_a_job_or_its_creation_while_it_has_none(viewer):
    now = timezone.now()
    long_ago = now - LONG_AGO
    ended_now = made(long_ago, succeeded=True, finished_at=now)
    ended_long_ago = made(long_ago, failed=True, finished_at=now - timedelta(days=40))
    made_now = [JobFactory(), JobFactory(scheduled=True), JobFactory(running=True)]
    made_long_ago = [made(long_ago), made(long_ago, scheduled=True), made(long_ago, running=True)]
    recent = {ended_now.pk, *(job.pk for job in made_now)}
    past = {ended_long_ago.pk, *(job.pk for job in made_long_ago)}

    for time in ("hour", "day", "week", "month"):
        assert found(viewer, activity=time) == recent
    for time in ("before-day", "before-week", "before-month"):
        assert found(viewer, activity=time) == past


@pytest.mark.parametrize(("age", "time"), [(2, "day"), (30, "week"), (24 * 10, "month")])
def test_each_time_of_activity_reaches_further_back(viewer, age, time):
    ended = timezone.now() - timedelta(hours=age)
    job = made(ended, succeeded=True, finished_at=ended)
    times = ["hour", "day", "week", "month"]

    including = [name for name in times if found(viewer, activity=name) == {job.pk}]

    assert including == times[times.index(time) :]


def test_a_job_of_a_process_whose_clock_is_ahead_is_not_missed(viewer):
    ended = timezone.now() - timedelta(days=1, minutes=1)
    pk = last_id_until((ended + timedelta(minutes=50)).timestamp())
    job = JobFactory(pk=pk, succeeded=True, created_at=ended, finished_at=ended)

    assert found(viewer, activity="before-day") == {job.pk}


@pytest.mark.parametrize(
    "query", [{"status": "asleep"}, {"activity": "never"}, {"type": "a\0b"}, {"queue": "\0"}]
)
def test_a_value_that_means_nothing_leads_back_to_the_list(viewer, query):
    response = job_list(viewer, **query)

    assert (response.status_code, response.url.partition("?")[2]) == (302, "e=1")


def test_types_are_offered_from_wherever_one_is_known(viewer):
    JobFactory(type="of.a.job")
    JobStatsRollup.objects.create(type="of.purged.jobs")
    ScheduleFactory(type="of.a.schedule")
    QueueControlFactory(kind="type", name="of.a.pause")
    QueueControlFactory(kind="queue", name="no-type")

    types = offered(job_list(viewer), "type")

    assert {"of.a.job", "of.purged.jobs", "of.a.schedule", "of.a.pause"} <= set(types)
    assert "jobqueue.history.purge" in types  # The registry knows it.
    assert "no-type" not in types


def test_queues_are_offered_from_wherever_one_is_known(viewer):
    JobFactory(queue="of-a-job")
    ScheduleFactory(queue="of-a-schedule")
    QueueControlFactory(kind="queue", name="of-a-pause")
    QueueControlFactory(kind="type", name="no-queue")

    queues = offered(job_list(viewer), "queue")

    assert queues == sorted(["default", "of-a-job", "of-a-schedule", "of-a-pause"])


def test_however_many_types_there_are_few_are_offered_and_the_chosen_one_is_among_them(viewer):
    for number in range(choices.MOST_CHOICES + 20):
        JobFactory(type=f"number.{number:03}")
    JobFactory.create_batch(3, type="the.most.frequent")

    types = offered(job_list(viewer, type="zz.chosen"), "type")

    assert len(types) == choices.MOST_CHOICES
    assert {"zz.chosen", "the.most.frequent"} <= set(types)


FORBIDDEN = [
    {"payload__password__startswith": "s"},
    {"payload__token__startswith": "s"},
    {"payload": "{}"},
    {"last_error__regex": "s"},
    {"last_error": f"ValueError: {SECRET}"},
    {"result__isnull": "1"},
    {"attempt_history__message__contains": "s"},
    {"attempt_history__traceback__regex": "s"},
    {"type__startswith": "s"},
    {"status__exact": "failed"},
    {"reason__contains": "s"},
    {"dedup_key": "s"},
    {"pk__in": "s"},
    {"_to_field": "payload"},
    {"_to_field": "last_error"},
]
IDS = [f"{key}={value}"[:40] for query in FORBIDDEN for key, value in query.items()]


@pytest.mark.parametrize("query", FORBIDDEN, ids=IDS)
def test_no_address_can_ask_what_a_job_carries(viewer, failed_job, query):
    assert job_list(viewer, **query).status_code == 400


@pytest.mark.parametrize("query", FORBIDDEN, ids=IDS)
def test_not_even_those_who_may_see_it_can_ask_that_way(admin_client, failed_job, query):
    assert job_list(admin_client, **query).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        *({"o": order} for order in ("0", "-1.2.3", "payload", "-payload", "99", "-0.-1.-2.-9")),
        *({"q": SECRET}, {"q": "ValueError"}, {"q": "payload:swordfish"}),
        *({"_facets": "True"}, {"all": ""}, {"_popup": "1"}, {"e": "1"}),
    ],
    ids=str,
)
def test_what_is_asked_by_order_search_and_flags_tells_nothing_of_payloads(viewer, query):
    """Two jobs that differ in nothing but what they carry come back the same way."""
    first = JobFactory(payload={"word": SECRET}, failed=True, last_error=f"A: {SECRET}")
    second = JobFactory(payload={"word": "a"}, failed=True, last_error="A: a")

    before = [job.pk for job in job_list(viewer, **query).context["cl"].result_list]
    swapped = {"payload": first.payload, "last_error": first.last_error}
    type(first).objects.filter(pk=first.pk).update(payload=second.payload, last_error="A: a")
    type(first).objects.filter(pk=second.pk).update(**swapped)
    after = [job.pk for job in job_list(viewer, **query).context["cl"].result_list]

    assert before == after
    assert before in ([second.pk, first.pk], [])
