"""Which types wait that nobody here knows."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobqueue.managers import claims
from django_jobqueue.models import Job
from tests.claims import row
from tests.factories import JobFactory
from tests.marks import on_postgresql

pytestmark = pytest.mark.django_db

FAR_TOO_LONG_A_NUMBER = '{"args": [' + "9" * 5_000 + "]}"


def waiting(*kinds, **columns):
    return [JobFactory(type=kind, **columns) for kind in kinds]


def store(job, payload):
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {Job._meta.db_table} SET payload = %s WHERE type = %s", [payload, job.type]
        )


def test_types_come_with_the_payload_of_a_job(jobs):
    for number in range(3):
        waiting("app.send", payload={"args": [number], "backend": "default"})
    waiting("app.note", payload={"kwargs": {"text": 'a "quoted" é'}})

    found = jobs.waiting_types([])

    assert found.keys() == {"app.send", "app.note"}
    assert found["app.send"] in [{"args": [n], "backend": "default"} for n in range(3)]
    assert found["app.note"] == {"kwargs": {"text": 'a "quoted" é'}}


def test_nothing_waits_in_an_empty_table(jobs):
    assert jobs.waiting_types(["app.send"]) == {}


def test_known_types_are_left_out(jobs):
    waiting("a", "b", "c", "d", 'q"u\\o{t}e,d')

    assert jobs.waiting_types(["a", "c", "unseen", 'q"u\\o{t}e,d']).keys() == {"b", "d"}
    assert jobs.waiting_types(name for name in "abc").keys() == {"d", 'q"u\\o{t}e,d'}


@pytest.mark.parametrize(
    "state", ["scheduled", "due", "running", "succeeded", "failed", "cancelled"]
)
def test_only_ready_jobs_wait(jobs, state):
    JobFactory(type="app.elsewhere", **{state: True})
    waiting("app.send")

    assert jobs.waiting_types([]).keys() == {"app.send"}


@pytest.mark.parametrize(("kind", "name"), [("type", "app.send"), ("queue", "mail")])
@pytest.mark.parametrize("queues", [None, ("mail",)])
def test_what_is_paused_waits_too(jobs, kind, name, queues):
    waiting("app.send", queue="mail")
    Job.objects.pause(kind, name)

    assert jobs.waiting_types([], queues=queues).keys() == {"app.send"}


def test_only_jobs_in_the_queues_count(jobs):
    waiting("app.both", "app.mail", queue="mail", payload={"from": "mail"})
    waiting("app.both", "app.default")
    waiting("app.other", queue="other")

    in_mail = jobs.waiting_types([], queues=("mail",))
    in_two = jobs.waiting_types([], queues=("mail", "other", "mail"))
    in_default = jobs.waiting_types(["app.both"], queues=["none", "default"])

    assert in_mail == {"app.both": {"from": "mail"}, "app.mail": {"from": "mail"}}
    assert in_two.keys() == {"app.both", "app.mail", "app.other"}
    assert in_default.keys() == {"app.default"}


def test_without_queues_nothing_is_asked(jobs, django_assert_num_queries):
    waiting("app.send")

    with django_assert_num_queries(0):
        assert jobs.waiting_types([], queues=()) == {}


def test_what_is_too_much_for_one_look_comes_once_the_first_are_known(jobs, monkeypatch):
    monkeypatch.setattr(claims, "MOST_WAITING_TYPES", 3)
    kinds = {f"app.kind{number}" for number in range(8)}
    waiting(*kinds)
    known = set()

    for count in (3, 3, 2, 0):
        found = jobs.waiting_types(known)
        assert len(found) == count
        assert not known & found.keys()
        known |= found.keys()

    assert known == kinds


def test_a_payload_that_python_cannot_read_is_none_and_hides_no_other(jobs):
    job, _ = waiting("app.broken", "app.send", payload={"args": []})
    store(job, FAR_TOO_LONG_A_NUMBER)

    assert jobs.waiting_types([]) == {"app.broken": None, "app.send": {"args": []}}


def test_a_payload_is_told_as_it_is_stored(jobs):
    waiting("app.list", payload=[1, None])

    assert jobs.waiting_types([]) == {"app.list": [1, None]}


def test_nothing_is_locked_or_changed(jobs):
    (job,) = waiting("app.send")
    before = row(job)

    with CaptureQueriesContext(connection) as queries:
        jobs.waiting_types([])

    assert [entry["sql"] for entry in queries if "UPDATE" in entry["sql"]] == []
    assert row(job) == before


@on_postgresql
def test_it_is_one_statement(django_assert_num_queries):
    waiting("app.send", "app.note", queue="mail")

    with django_assert_num_queries(1):
        Job.objects.waiting_types([])
    with django_assert_num_queries(1):
        Job.objects.waiting_types([], queues=("mail",))


@on_postgresql
def test_types_that_wait_in_other_queues_alone_are_passed_over_up_to_a_limit(monkeypatch):
    from django_jobqueue.database import postgresql

    monkeypatch.setattr(postgresql, "MOST_UNKNOWN_HOPS", 3)
    waiting("a", "b", "c", queue="other")
    waiting("d", "e", queue="mail")

    assert Job.objects.waiting_types([], queues=("mail",)) == {}
    assert Job.objects.waiting_types(["a"], queues=("mail",)).keys() == {"d"}
