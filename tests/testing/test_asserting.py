from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import pytest
from django.test import TestCase

from django_jobqueue import JobRequest, registry
from django_jobqueue.models import Job
from django_jobqueue.testing import (
    assert_enqueued,
    assert_not_enqueued,
    capture_enqueued,
    drain,
    enqueued,
)

pytestmark = pytest.mark.django_db
PAYLOAD = {"id": 7, "to": {"name": "Ann", "mail": "ann@example.org"}, "parts": [1, {"n": 2}]}
SOON = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.fixture
def job():
    return Job.objects.enqueue(
        "site.mail",
        PAYLOAD,
        queue="mail",
        priority=3,
        subject=("report", 7),
        reason="by hand",
        org_id="acme",
        scheduled_for=SOON,
    )


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"payload": {"id": 7}},
        {"payload": {"to": {"name": "Ann"}, "parts": (1, {"n": 2})}},
        {"payload": {"id": ANY}},
        {"exact_payload": PAYLOAD},
        {"queue": "mail", "priority": 3, "reason": "by hand", "org_id": "acme"},
        {"subject": ("report", 7), "status": "pending"},
        {"scheduled_for": SOON + timedelta(seconds=4)},
        {"scheduled_for": SOON + timedelta(hours=1), "tolerance": timedelta(hours=1)},
    ],
    ids=str,
)
def test_a_job_that_is_as_expected_is_found(job, expected):
    assert assert_enqueued("site.mail", **expected) == [job]
    assert enqueued(**expected) == [job]
    with pytest.raises(AssertionError, match=r"Expected no job: site\.mail"):
        assert_not_enqueued("site.mail", **expected)


@pytest.mark.parametrize(
    ("expected", "difference"),
    [
        ({"payload": {"id": 8}}, "payload.id: expected 8, got 7"),
        ({"payload": {"of": 1}}, "payload.of: expected 1, is missing"),
        ({"payload": {"to": {"name": "Bob"}}}, "payload.to.name: expected 'Bob', got 'Ann'"),
        ({"payload": {"parts": [1, {"n": 3}]}}, "payload.parts[1].n: expected 3, got 2"),
        ({"payload": {"parts": [1]}}, "payload.parts: expected 1 items, got 2: [1, {'n': 2}]"),
        ({"exact_payload": {"id": 7, "to": ANY}}, "payload.parts: expected nothing, got [1, {"),
        ({"queue": "default"}, "queue: expected 'default', got 'mail'"),
        ({"subject": ("report", 8)}, "subject: expected ('report', '8'), got ('report', '7')"),
        ({"subject": None}, "subject: expected (None, None), got ('report', '7')"),
        ({"status": "failed"}, "status: expected 'failed', got 'pending'"),
        (
            {"scheduled_for": SOON + timedelta(seconds=6)},
            "scheduled_for: expected '2031-01-01T00:00:06+00:00', got '2031-01-01T00:00:00+00:00'",
        ),
        ({"delay": 60}, "delay: expected datetime.timedelta(seconds=60), got"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_how_a_job_differs_is_said(job, expected, difference):
    with pytest.raises(AssertionError) as caught:
        assert_enqueued("site.mail", **expected)

    assert f"\n  {difference}" in str(caught.value)
    assert enqueued("site.mail", **expected) == []
    assert_not_enqueued("site.mail", **expected)


@pytest.mark.parametrize(
    ("given", "expected", "matches"),
    [
        ({"delay": 60}, {"delay": timedelta(minutes=1)}, True),
        ({"delay": 60}, {"delay": 62}, True),
        ({"delay": 60}, {"delay": 62, "tolerance": 1}, False),
        ({"delay": 60}, {"delay": 0}, False),
        ({"delay": 3}, {"delay": 0}, False),
        ({}, {"delay": 0}, True),
        ({}, {"delay": 3}, False),
        ({}, {"scheduled_for": SOON}, False),
    ],
)
def test_a_delay_counts_from_the_enqueue(given, expected, matches):
    Job.objects.enqueue("site.mail", **given)

    assert bool(enqueued("site.mail", **expected)) is matches


def test_the_error_shows_the_nearest_job_and_all_others():
    Job.objects.enqueue("site.chain", {"id": 8})
    Job.objects.enqueue("site.mail", {"id": 9}, queue="bulk")
    Job.objects.enqueue("site.mail", {"id": 7}, subject=("report", 7), delay=90)

    with pytest.raises(AssertionError) as caught:
        assert_enqueued("site.mail", payload={"id": 8}, queue="default")

    first, nearest, difference, head, *others = str(caught.value).splitlines()
    assert first == "No job was enqueued: site.mail with payload={'id': 8}, queue='default'."
    assert nearest.startswith('The nearest, site.mail {"id": 7} (pending, queue default, subject ')
    assert difference == "  payload.id: expected 8, got 7"
    assert head == "There are:"
    assert [line.split(" (")[0] for line in others] == [
        '  site.chain {"id": 8}',
        '  site.mail {"id": 9}',
        '  site.mail {"id": 7}',
    ]


def test_the_error_says_so_when_there_is_nothing():
    with pytest.raises(AssertionError, match="Nothing was enqueued"):
        assert_enqueued()


def test_the_error_lists_the_newest_of_many_and_cuts_long_payloads():
    Job.objects.enqueue_many([JobRequest("site.chain", {"text": "a" * 500})] * 23)

    with pytest.raises(AssertionError) as caught:
        assert_enqueued("site.mail")

    assert str(caught.value).endswith("  and 3 older ones")
    assert max(map(len, str(caught.value).splitlines())) < 300


def test_the_count_is_exact():
    Job.objects.enqueue_many([JobRequest("site.chain"), JobRequest("site.chain")])

    assert len(assert_enqueued("site.chain", count=2)) == 2
    assert assert_enqueued("site.mail", count=0) == []
    with pytest.raises(AssertionError, match=r"Expected 1 jobs, found 2: site\.chain"):
        assert_enqueued("site.chain", count=1)
    with pytest.raises(AssertionError, match="Expected 3 jobs, found 2"):
        assert_enqueued("site.chain", count=3)


def test_a_type_may_be_named_by_its_handler():
    job = Job.objects.enqueue("site.chain")

    assert enqueued(registry.get("site.chain")) == [job]
    with pytest.raises(TypeError, match="expected a string, a handler or a task"):
        enqueued(7)


def test_a_word_that_is_not_known_is_refused():
    with pytest.raises(TypeError, match="Nothing is known of 'quue'; expected payload, "):
        assert_not_enqueued("site.mail", quue="mail")


def test_a_job_counts_whatever_became_of_it():
    Job.objects.enqueue("site.chain", {"left": 1})
    drain()

    assert_enqueued("site.chain", status="succeeded", count=2)
    assert_not_enqueued(status="pending")


def test_what_a_block_enqueues_is_captured():
    Job.objects.enqueue("site.chain", {"left": 0}, dedup_key="a")
    with capture_enqueued() as jobs:
        Job.objects.enqueue("site.chain", {"left": 0}, dedup_key="a")
        Job.objects.enqueue_many([JobRequest("site.mail"), JobRequest("site.chain", {"left": 1})])
        assert jobs == []

    assert [job.type for job in jobs] == ["site.mail", "site.chain"]
    assert_enqueued("site.chain", payload={"left": 1}, count=1, among=jobs)
    assert_not_enqueued(payload={"left": 0}, among=jobs)


def test_a_block_that_fails_shows_what_it_enqueued():
    def fail():
        with capture_enqueued() as jobs:
            captured.append(jobs)
            Job.objects.enqueue("site.mail")
            raise ValueError("after the enqueue")

    captured = []
    with pytest.raises(ValueError, match="after the enqueue"):
        fail()

    assert [job.type for job in captured[0]] == ["site.mail"]


class InATestCase(TestCase):
    @classmethod
    def setUpTestData(cls):
        Job.objects.enqueue("site.mail")

    def test_rows_of_the_class_are_there_but_not_captured(self):
        with capture_enqueued() as jobs:
            Job.objects.enqueue("site.chain")

        assert_enqueued("site.mail")
        assert_not_enqueued("site.mail", among=jobs)
