"""A provider that asked us to wait is left alone; nobody else waits for it."""

import itertools
import threading
import time
from datetime import timedelta

import pytest

from django_jobqueue import RateLimitError
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.processes import counted, eventually
from tests.testapp.meeting import meet

WAIT_SECONDS = 2.0
QUICK = {"POLL_INTERVAL": 0.05, "RATE_LIMIT_BASE": 0.01, "RATE_LIMIT_MAX": 0.02}


@pytest.fixture(autouse=True)
def _quick_to_return(jobqueue):
    """The wait is the provider's, not ours."""
    jobqueue(**QUICK)


class Provider:
    """Answers its calls by number; remembers when each came."""

    def __init__(self, answer):
        self._answer = answer
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.calls = []
        self.refused_at = []

    def __call__(self, job):
        with self._lock:
            number = next(self._numbers)
            self.calls.append(time.monotonic())
        try:
            return self._answer(number)
        except Exception:
            self.refused_at.append(time.monotonic())
            raise

    def calls_within(self, seconds):
        """Return how many calls came after the first refusal, and so soon after it."""
        since = self.refused_at[0]
        return sum(since < at < since + seconds for at in self.calls)


class TooManyRequests(Exception):
    """As an HTTP client raises it."""

    def __init__(self, retry_after):
        super().__init__("429 Too Many Requests")
        self.status_code = 429
        self.headers = {"Retry-After": str(retry_after)}


def refuse_first(retry_after=WAIT_SECONDS, error=RateLimitError):
    def answer(number):
        if number == 0:
            raise (
                TooManyRequests(int(retry_after))
                if error is TooManyRequests
                else error(retry_after=retry_after)
            )

    return Provider(answer)


def succeeded(*jobs):
    ids = [job.pk for job in jobs]
    found = Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED)
    return lambda: found.count() == len(ids)


class TestAClosedGate:
    @pytest.mark.parametrize("error", [RateLimitError, TooManyRequests])
    def test_holds_its_jobs_back_uncharged_and_then_lets_all_through(self, pools, handler, error):
        slots = 4
        provider = refuse_first(error=error)
        handler(name="call", provider="acme")(provider)
        jobs = [Job.objects.enqueue("call") for _ in range(100)]
        pool = pools(slots)
        pool.start()
        eventually(lambda: provider.refused_at, "nobody called")
        eventually(
            lambda: pool.busy == 0 and Job.objects.filter(rate_limit_hits=1).exists(),
            "the slots do not come free",
            WAIT_SECONDS / 2,
        )

        early = len(provider.calls)
        waiting = list(Job.objects.pending())
        assert len(waiting) >= 100 - slots
        assert {job.attempts for job in waiting} == {0}
        assert sum(job.rate_limit_hits for job in waiting) == 1
        [refused] = [job for job in waiting if job.rate_limit_hits]
        assert refused.rate_limited_at is not None
        assert refused.last_error

        eventually(succeeded(*jobs), "the gate did not open")
        assert early <= slots
        assert provider.calls_within(WAIT_SECONDS) < slots
        assert len(provider.calls) == 101
        assert set(Job.objects.values_list("attempts", flat=True)) == {1}
        assert Job.objects.filter(rate_limit_hits=1).count() == 1
        assert pool.outcomes[SettleOutcome.SUCCEEDED] == 100
        # Claimed and handed back at once would look the same from outside: it is not claimed.
        assert pool.outcomes[SettleOutcome.RATE_LIMIT_DEFERRED] <= slots

    def test_is_no_business_of_other_providers_nor_of_jobs_without_one(self, pools, handler):
        provider = refuse_first()
        handler(name="call", provider="acme")(provider)
        handler(name="other", provider="other")(lambda job: None)
        waiting = Job.objects.enqueue("call", priority=-1)
        others = [Job.objects.enqueue(name) for _ in range(50) for name in ("other", "test.echo")]
        pools(2).start()
        eventually(succeeded(*others), "the others wait too", WAIT_SECONDS)

        assert len(provider.calls) == 1
        assert Job.objects.get(pk=waiting.pk).status == JobStatus.PENDING
        took = Job.objects.order_by("-finished_at").filter(type="other").first().finished_at
        assert took < Job.objects.get(pk=waiting.pk).scheduled_for

    def test_holds_every_type_that_shares_its_key(self, pools, handler):
        provider = refuse_first()
        called = []
        handler(name="call", provider="acme")(provider)
        handler(name="same", provider="acme")(lambda job: called.append(time.monotonic()))
        first = Job.objects.enqueue("call", priority=-1)
        same = [Job.objects.enqueue("same") for _ in range(10)]
        pool = pools(1)
        pool.start()
        eventually(succeeded(first, *same), "not every job ran")

        assert pool.outcomes[SettleOutcome.RATE_LIMIT_DEFERRED] == 1
        assert min(called) >= provider.refused_at[0] + WAIT_SECONDS * 0.9

    def test_parks_no_slot(self, pools, handler, meeting):
        provider = refuse_first()
        handler(name="call", provider="acme")(provider)
        for _ in range(10):
            Job.objects.enqueue("call", priority=-1)
        pool = pools(3)
        pool.start()
        eventually(lambda: provider.refused_at and pool.busy == 0, "the slots do not come free")
        for _ in range(3):
            Job.objects.enqueue("test.meet", meeting.payload)

        guests = [meeting.guest() for _ in range(3)]

        assert time.monotonic() < provider.refused_at[0] + WAIT_SECONDS
        for guest in guests:
            guest.let_go()

    def test_opens_in_time_though_nobody_polls(self, pools, handler, jobqueue):
        jobqueue(**QUICK | {"POLL_INTERVAL": 60})
        provider = refuse_first(0.5)
        handler(name="call", provider="acme")(provider)
        jobs = [Job.objects.enqueue("call") for _ in range(3)]
        pools(1).start()

        eventually(succeeded(*jobs), "the gate did not open", 5)

    def test_of_one_pool_is_not_the_gate_of_another_process(self, pools, handler):
        """Each process learns by itself; a job is refused at most once by each."""
        provider = Provider(lambda number: None)
        handler(name="call", provider="acme")(provider)
        job = Job.objects.enqueue("call")
        closed, opened = pools(1), pools(1)
        closed.throttle.trip("acme", timedelta(seconds=60))
        closed.start()
        opened.start()

        eventually(succeeded(job), "the open gate is closed too")
        assert Job.objects.get(pk=job.pk).worker.startswith(opened.name)


class TestOpening:
    def test_a_call_sent_before_the_refusal_does_not_open_the_gate(self, pools, handler, meeting):
        """One sent later that went well would: it shows that the provider serves us again."""
        handler(name="call", provider="acme")(meet)
        first, second = (Job.objects.enqueue("call", meeting.payload) for _ in range(2))
        pool = pools(1)
        pool.start()
        guest = meeting.guest()
        pool.throttle.trip("acme", timedelta(seconds=60))
        # The call in hand was sent before: it shows nothing.
        guest.let_go()
        eventually(succeeded(first), "the job was not settled")
        assert pool.throttle.closed() == {"acme"}
        assert meeting.nobody_waits()

        assert pool.throttle.clear("acme", pool.throttle.ticket())
        pool._bell.ring()
        meeting.guest().let_go()
        eventually(succeeded(second), "the gate did not open")

    def test_a_longer_wait_extends_and_a_shorter_one_does_not(self, pools, handler):
        """Two calls are refused at once, the longer wait first."""
        both = threading.Barrier(2, timeout=30)
        first_settled = threading.Event()

        def answer(number):
            if number < 2:
                both.wait()
                if number == 1:
                    assert first_settled.wait(30)
                raise RateLimitError(retry_after=[WAIT_SECONDS, 0.1][number])

        provider = Provider(answer)
        handler(name="call", provider="acme")(provider)
        jobs = [Job.objects.enqueue("call") for _ in range(5)]
        pool = pools(2)
        pool.start()
        eventually(pool.throttle.closed, "nobody was refused")
        first_settled.set()
        eventually(succeeded(*jobs), "not every job ran")

        assert len(provider.calls) == 7
        later = provider.calls[2:]
        assert min(later) >= provider.refused_at[0] + WAIT_SECONDS * 0.9


class TestTheBudget:
    def test_a_job_that_is_refused_too_often_fails(self, pools, handler, jobqueue):
        jobqueue(**QUICK, RATE_LIMIT_MAX_HITS=3)
        provider = Provider(lambda number: refuse(0.01))
        handler(name="call", provider="acme", max_attempts=1)(provider)
        job = Job.objects.enqueue("call")
        pool = pools(1)
        pool.start()
        eventually(lambda: Job.objects.terminal().exists(), "the job never fails")

        job.refresh_from_db()
        assert job.status == JobStatus.FAILED
        assert job.last_error.startswith("RateLimitError")
        assert job.rate_limit_hits == len(provider.calls) == 4
        assert job.attempt_history.count() == 4
        counted(pool, {SettleOutcome.RATE_LIMIT_DEFERRED: 3, SettleOutcome.FAILED: 1})

    def test_refusals_spend_no_attempt(self, pools, handler):
        def answer(number):
            if number in {0, 2}:
                refuse(0.01)
            if number == 1:
                raise ValueError("a fault of its own")
            return number

        handler(name="call", max_attempts=2)(Provider(answer))
        job = Job.objects.enqueue("call")
        pools(1).start()
        eventually(succeeded(job), "the job did not succeed")

        job.refresh_from_db()
        assert (job.attempts, job.rate_limit_hits, job.result) == (2, 2, 3)


def refuse(seconds):
    raise RateLimitError(retry_after=seconds)


class TestAJobThatWasClaimedBefore:
    """The gate closes between its claim and its start."""

    @pytest.fixture
    def run(self, pools, handler):
        calls = []

        @handler(provider="acme")
        def call(job):
            calls.append(job.attempts)
            return "called"

        def run_with(wait):
            pool = pools(1)
            pool._exchange._manager = Closing(
                lambda: pool.throttle.trip("acme", timedelta(seconds=wait))
            )
            job = Job.objects.enqueue("call")
            pool.start()
            return pool, job

        run_with.calls = calls
        return run_with

    def test_is_deferred_without_a_charge_and_without_a_hit(self, run):
        pool, job = run(1.6)
        eventually(lambda: pool.outcomes, "the job was neither run nor deferred")
        job.refresh_from_db()

        assert run.calls == []
        counted(pool, {SettleOutcome.RATE_LIMIT_DEFERRED: 1})
        assert (job.status, job.attempts, job.rate_limit_hits) == (JobStatus.PENDING, 0, 0)
        assert job.last_error == ""
        eventually(succeeded(job), "the job did not run once the gate was open")
        job.refresh_from_db()
        assert run.calls == [1]
        assert (job.attempts, job.rate_limit_hits) == (1, 0)

    def test_waits_in_its_slot_when_the_gate_opens_soon(self, run):
        pool, job = run(0.5)
        eventually(succeeded(job), "the job did not run")

        counted(pool, {SettleOutcome.SUCCEEDED: 1})
        job.refresh_from_db()
        assert (job.attempts, job.rate_limit_hits) == (1, 0)
        assert job.finished_at - job.started_at >= timedelta(seconds=0.4)


class Closing(type(Job.objects)):
    """A manager at whose first claimed job something happens."""

    def __init__(self, happen):
        super().__init__()
        self.model = Job
        self._happen = happen

    def settle_and_claim(self, *args, **options):
        outcomes, jobs = super().settle_and_claim(*args, **options)
        if jobs:
            happen, self._happen = self._happen, lambda: None
            happen()
        return outcomes, jobs
