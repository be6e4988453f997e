"""Two workers of sixteen slots in a storm: whatever ends, breaks or dies, no rule is broken.

`JOBQUEUE_INVARIANT_SECONDS` says how long the storm lasts, at the least.
"""

import contextlib
import os
import random
import threading
import time
from collections import Counter
from datetime import timedelta

import pytest

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from tests.invariants.audit import audited, read_record
from tests.invariants.rules import breaches, lost_claims
from tests.invariants.storm.jobs import LEASE_SECONDS, REFUSED_RESULT, SHARES
from tests.invariants.weather import GRACE_SECONDS, Weather
from tests.marks import committed, on_postgresql
from tests.processes import eventually

SECONDS = float(os.environ.get("JOBQUEUE_INVARIANT_SECONDS", "60"))
CALM_SECONDS = 90
PROCESSES, SLOTS = 2, 16
BACKLOG, PORTION = 100, 50
TICK_SECONDS = 0.05
REAP_SECONDS = 0.5
MAX_ATTEMPTS = 4
THRESHOLD = timedelta(minutes=30)

QUICK = {
    "LEASE_CAP": LEASE_SECONDS,
    "REAPER_INTERVAL": 0.5,
    "POLL_INTERVAL": 0.2,
    "MAX_ATTEMPTS": MAX_ATTEMPTS,
    "RETRY_BASE": 0.05,
    "RETRY_MAX": 0.3,
    "RATE_LIMIT_BASE": 0.05,
    "RATE_LIMIT_MAX": 0.3,
    "RATE_LIMIT_MAX_HITS": 3,
    "SHUTDOWN_GRACE": GRACE_SECONDS,
}
REFUSAL = f"""CHECK (result IS NULL OR result <> '"{REFUSED_RESULT}"'::jsonb)"""

pytestmark = [committed, on_postgresql, pytest.mark.timeout(SECONDS * 2 + CALM_SECONDS + 180)]


@pytest.fixture
def notes(tmp_path, monkeypatch):
    path = tmp_path / "notes"
    path.touch()
    monkeypatch.setenv("STORM_NOTES", os.fspath(path))
    return path


def test_no_rule_is_broken_in_a_storm(site, notes):
    workers = site("INSTALLED_APPS += ['tests.invariants.storm']", **QUICK)
    with audited(REFUSAL):
        with Weather(lambda: workers.worker("--concurrency", str(SLOTS)), PROCESSES) as weather:
            enqueued = storm(weather, SECONDS)
            with contextlib.suppress(AssertionError):  # The rules tell which job was not.
                eventually(
                    lambda: weather.is_calm() and is_done(), "all jobs are done", CALM_SECONDS
                )
            ends = weather.stop()
        record = read_record(enqueued, notes)
    counts = summary(record) + weather.counts
    print(f"\n{len(enqueued)} jobs: {dict(counts)}")

    assert not (text := breaches(record)), text
    assert set(ends) == {0}
    expected = EXPECTED if SECONDS >= LONG_SECONDS else EXPECTED - RARE
    assert {name for name in expected if not counts[name]} == set()


def storm(weather, seconds):
    """Supply jobs, and let the weather blow, for so long; return the ids of the jobs."""
    enqueued = []
    pause = threading.Event()
    end = time.monotonic() + seconds
    next_reap = 0.0
    while (now := time.monotonic()) < end or not weather.has_been_bad:
        weather.blow()
        if now >= next_reap:
            Job.objects.reap(THRESHOLD, MAX_ATTEMPTS)
            next_reap = now + REAP_SECONDS
        if Job.objects.ready().count() < BACKLOG:
            enqueued += [job.pk for job in Job.objects.enqueue_many(portion())]
        pause.wait(TICK_SECONDS)
    return enqueued


def portion():
    """Return what to enqueue next; now and then it all asks the one provider at once."""
    shares = {"storm.provider": 1} if random.random() < 0.03 else SHARES
    types = random.choices(list(shares), weights=shares.values(), k=PORTION)
    return [JobRequest(job_type, priority=random.choice([0, 0, 5])) for job_type in types]


def is_done():
    return not Job.objects.active().exists()


EXPECTED = {
    "killed",
    "stopped",
    "halted",
    "backends terminated",
    "claims lost",
    "claims made in groups",
    "renewals",
    "succeeded",
    "failed",
    "attempt rows reaped",
    "attempt rows released",
    "attempt rows retry-scheduled",
    "attempt rows rate-limit-deferred",
    "attempt rows failed",
    "JobTimeoutError",
    "InvalidResult",
    "IntegrityError",
    "PermanentError",
    "SystemExit",
}
"""What the storm must have brought: without it the test proves nothing."""

RARE = {"attempt rows released", "PermanentError", "SystemExit", "IntegrityError", "InvalidResult"}
LONG_SECONDS = 45
"""What a shorter storm may do without."""


def summary(record):
    counts = Counter(row.status for row in record.table.values())
    counts.update(f"attempt rows {ending.outcome}" for ending in record.endings)
    counts.update(ending.error.rpartition(".")[2] for ending in record.endings if ending.error)
    counts["claims"] = sum(change.is_claim for change in record.changes)
    counts["renewals"] = sum(change.is_renewal for change in record.changes)
    counts["claims lost"] = len(lost_claims(record))
    counts["failed by the reaper"] = sum(
        ends[0].new.status == "failed" and record.endings_of[token][0].outcome == "reaped"
        for token, ends in record.ends.items()
    )
    counts["deferred at a closed gate"] = sum(
        ending.outcome == "rate-limit-deferred" and not ending.error for ending in record.endings
    )
    groups = Counter(change.transaction for change in record.changes if change.is_claim)
    counts["claims made in groups"] = sum(size for size in groups.values() if size > 1)
    counts["largest group"] = max(groups.values(), default=0)
    return counts
