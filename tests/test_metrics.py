import logging
import subprocess
import sys
from collections import Counter

import pytest
from django.db import transaction
from opentelemetry import metrics as api

from django_jobqueue import metrics
from django_jobqueue.enqueueing import JobRequest
from django_jobqueue.models import Job
from tests.meters import measured, values


@pytest.fixture(autouse=True)
def _no_series(monkeypatch):
    monkeypatch.setattr(metrics, "_known", {})
    monkeypatch.setattr(metrics, "_complained", [])


def test_the_package_needs_no_sdk():
    code = (
        "import sys, django_jobqueue.metrics as m; m.settled('a', 'b', 'failed', 1.0); "
        "print(m.is_on(), [n for n in sys.modules if n.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False []\n"


def test_without_an_sdk_nobody_measures():
    assert not metrics.is_on()


def test_labels_stay_few_however_many_types_there_are(reader, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_SERIES", 3)
    for number in range(20):
        metrics.claim_lost(f"type.{number}", "default")

    lost = values(reader, "jobqueue.claims.lost")
    assert sorted((dict(key)["job.type"], count) for key, count in lost.items()) == [
        ("other", 17),
        ("type.0", 1),
        ("type.1", 1),
        ("type.2", 1),
    ]


def test_a_wait_is_never_negative(reader):
    metrics.started("reports.build", "default", -0.5)

    (wait,) = measured(reader, "jobqueue.job.wait")
    assert (wait.sum, wait.count) == (0.0, 1)


def test_an_instrument_that_raises_costs_its_number_only(monkeypatch, caplog):
    class Broken:
        def add(self, amount, attributes):
            raise RuntimeError("token=hunter2")

    monkeypatch.setattr(metrics, "LOST", Broken())
    metrics.claim_lost("a", "b")
    metrics.claim_lost("a", "b")

    assert [(r.levelno, r.msg) for r in caplog.records] == [
        (logging.WARNING, "Metrics failed; going on, and saying so once")
    ]
    assert "hunter2" not in caplog.text


def test_a_provider_that_cannot_be_made_is_none(monkeypatch):
    monkeypatch.setattr(api, "get_meter_provider", lambda: 1 / 0)

    assert not metrics.is_on()


class TestEnqueued:
    def test_jobs_are_counted_by_type_and_queue_when_they_are_committed(
        self, reader, transactional_db
    ):
        with transaction.atomic():
            Job.objects.enqueue("a", {"n": 1}, org_id="acme")
            Job.objects.enqueue_many([JobRequest("a"), JobRequest("b", queue="slow")])
            assert values(reader, "messaging.client.sent.messages") == {}

        sent = values(reader, "messaging.client.sent.messages")
        assert {
            (dict(key)["job.type"], dict(key)["messaging.destination.name"]): count
            for key, count in sent.items()
        } == {("a", "default"): 2, ("b", "slow"): 1}
        assert {key for series in sent for key, _ in series} == {
            "job.type",
            "messaging.destination.name",
            "messaging.system",
        }

    def test_a_rollback_and_a_duplicate_count_nothing(self, reader, transactional_db):
        Job.objects.enqueue("a", dedup_key="one")
        Job.objects.enqueue("a", dedup_key="one")
        with transaction.atomic():
            Job.objects.enqueue("a")
            transaction.set_rollback(True)

        assert list(values(reader, "messaging.client.sent.messages").values()) == [1]

    def test_nothing_is_left_to_the_commit_while_nobody_measures(
        self, db, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks() as callbacks:
            Job.objects.enqueue("a")

        assert len(callbacks) == 1  # The wake-up.


def test_counts_may_be_given_at_once(reader):
    metrics.sent(Counter({("a", "default"): 3}))

    assert list(values(reader, "messaging.client.sent.messages").values()) == [3]
