"""What a running pool measures, read from the real SDK."""

import threading
from collections import Counter
from datetime import timedelta

import pytest

from django_jobqueue import RateLimitError, metrics
from django_jobqueue.models import Job
from tests.meters import measured, points, values

ALLOWED = {
    *("messaging.system", "messaging.destination.name", "job.type", "job.outcome"),
    "jobqueue.operation",
}


@pytest.fixture(autouse=True)
def _no_series(monkeypatch):
    monkeypatch.setattr(metrics, "_known", {})


def by_type(reader, name):
    return {dict(key)["job.type"]: count for key, count in values(reader, name).items()}


def outcomes(reader):
    found = Counter()
    for key, count in values(reader, "jobqueue.attempts.settled").items():
        found[dict(key)["job.type"], dict(key)["job.outcome"]] += count
    return found


def test_starts_ends_waits_and_durations_are_measured(reader, handler, drain):
    pause = threading.Event()

    @handler
    def sync_one(job):
        pause.wait(0.05)

    @handler(max_attempts=2)
    async def async_one(job):
        raise ValueError

    Job.objects.enqueue_many([])
    for _ in range(3):
        Job.objects.enqueue("sync_one", {"a": 1}, org_id="acme", queue="slow")
    Job.objects.enqueue("async_one")
    drain(2)

    assert by_type(reader, "messaging.client.consumed.messages") == {"sync_one": 3, "async_one": 2}
    assert outcomes(reader) == {
        ("sync_one", "succeeded"): 3,
        ("async_one", "retry-scheduled"): 1,
        ("async_one", "failed"): 1,
    }
    durations = {
        p.attributes["job.type"]: p
        for p in measured(reader, "messaging.process.duration")
        if p.attributes["job.outcome"] == "succeeded"
    }
    assert durations["sync_one"].count == 3
    assert 0.15 <= durations["sync_one"].sum < 10
    waits = {p.attributes["job.type"]: p for p in measured(reader, "jobqueue.job.wait")}
    assert (waits["sync_one"].count, waits["async_one"].count) == (3, 2)
    assert all(p.min >= 0 for p in waits.values())


def test_round_trips_are_measured(reader, handler, drain):
    @handler
    def quick(job):
        pass

    for _ in range(5):
        Job.objects.enqueue("quick")
    drain(1)

    trips = {
        p.attributes["jobqueue.operation"]: p
        for p in measured(reader, "jobqueue.exchange.duration")
    }
    assert trips["claim"].count >= 1
    assert trips["settle_and_claim"].count == 5
    assert all(0 < p.sum < 20 for p in trips.values())


def test_a_timeout_is_one_end_and_its_handler_is_counted_as_abandoned(reader, handler, drain):
    leaving = threading.Event()

    @handler(max_runtime=timedelta(seconds=0.2), max_attempts=1)
    def lingers(job):
        leaving.wait(20)

    seen = []

    @handler
    def looks(job):
        seen.extend(values(reader, "jobqueue.handlers.abandoned").values())

    Job.objects.enqueue("lingers")
    Job.objects.enqueue("looks")
    drain(1)
    leaving.set()

    assert outcomes(reader)["lingers", "failed"] == 1
    assert seen == [1]
    (duration,) = [
        p
        for p in measured(reader, "messaging.process.duration")
        if p.attributes["job.type"] == "lingers"
    ]
    assert 0.2 <= duration.sum < 10


def test_a_lost_claim_is_counted_once(reader, handler, drain):
    @handler(max_attempts=1)
    def loses(job):
        Job.objects.filter(pk=job.pk).update(
            status="pending", claim_token=None, lease_expires_at=None, ready_at=job.ready_at
        )
        type(job).objects.cancel(Job.objects.get(pk=job.pk))

    Job.objects.enqueue("loses")
    drain(1)

    assert outcomes(reader) == {("loses", "claim-lost"): 1}
    assert by_type(reader, "jobqueue.claims.lost") == {"loses": 1}


def test_a_claim_that_the_renewer_misses_is_the_same_loss(reader, handler, drain, jobqueue):
    jobqueue(POLL_INTERVAL=0.05, LEASE_CAP=0.6)
    pause = threading.Event()

    @handler(max_attempts=1)
    def loses(job):
        Job.objects.filter(pk=job.pk).update(
            status="cancelled", claim_token=None, lease_expires_at=None
        )
        while not job.claim_lost:
            pause.wait(0.02)

    Job.objects.enqueue("loses")
    drain(1)

    assert outcomes(reader) == {("loses", "claim-lost"): 1}
    assert by_type(reader, "jobqueue.claims.lost") == {"loses": 1}


def test_deferrals_unknown_types_and_releases_are_ends_too(reader, handler, drain, pools, jobqueue):
    jobqueue(POLL_INTERVAL=0.05, RATE_LIMIT_BASE=0.01, RATE_LIMIT_MAX=0.02, RATE_LIMIT_MAX_HITS=0)
    leaving = threading.Event()

    @handler(provider="acme")
    def hurries(job):
        raise RateLimitError(retry_after=0.01)

    @handler
    def stays(job):
        leaving.set()
        threading.Event().wait(2)

    Job.objects.enqueue("hurries")
    drain(1)
    Job.objects.enqueue("stays")
    pool = pools(3)
    pool.start()
    assert leaving.wait(20)
    slots = list(values(reader, "jobqueue.slots.total").values())
    busy = list(values(reader, "jobqueue.slots.busy").values())
    pool.stop(grace=0)

    assert (slots, busy) == ([3], [1])
    assert outcomes(reader) == {("hurries", "failed"): 1, ("stays", "released"): 1}
    # A stopped pool has no slots.
    assert values(reader, "jobqueue.slots.total").keys() == set()


def test_labels_name_types_queues_and_outcomes_only(reader, handler, drain):
    @handler(max_attempts=1)
    def fails(job):
        raise ValueError("hunter2")

    job = Job.objects.enqueue("fails", {"token": "hunter2"}, org_id="acme", subject=("report", 7))
    drain(1)

    found = points(reader)
    assert len(found) >= 6
    labels = {
        key: value for ps in found.values() for p in ps for key, value in p.attributes.items()
    }
    assert labels.keys() <= ALLOWED
    assert not {"acme", str(job.pk), "hunter2"} & set(labels.values())


def test_metrics_that_fail_cost_no_job(reader, handler, run_one, monkeypatch):
    class Broken:
        def add(self, *args):
            raise RuntimeError

        record = add

    for name in ("STARTED", "SETTLED", "DURATION", "WAIT", "ROUND_TRIP"):
        monkeypatch.setattr(metrics, name, Broken())

    @handler
    def goes_well(job):
        return 7

    assert run_one("goes_well").result == 7
