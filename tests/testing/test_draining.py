from datetime import timedelta

import pytest
from django.test import TestCase, TransactionTestCase

from django_jobqueue import PermanentError, registry
from django_jobqueue.exceptions import HandlerNotFound, RateLimitError
from django_jobqueue.models import Job
from django_jobqueue.states import SettleOutcome
from django_jobqueue.testing import EndlessDrain, adrain, drain, fake_clock
from tests.testing.jobs import Handler


class Draining:
    def test_it_runs_what_jobs_enqueue_until_nothing_is_left(self):
        Job.objects.enqueue("site.chain", {"left": 3})

        drained = drain()

        assert [run.result for run in drained] == [3, 2, 1, 0]
        assert len(drained) == len(drained.jobs) == 4
        assert drained.outcomes == {SettleOutcome.SUCCEEDED: 4}
        assert not Job.objects.pending().exists()

    def test_an_empty_queue_is_drained_already(self):
        assert len(drain()) == 0

    def test_it_follows_the_order_of_claims(self):
        for number, priority in enumerate([0, 5, -5, 0]):
            payload = {"left": 0, "number": number}
            Job.objects.enqueue("site.chain", payload, priority=priority)

        assert [run.job.payload["number"] for run in drain()] == [2, 0, 3, 1]

    def test_only_the_queues_and_types_that_were_asked_for_run(self):
        mail = Job.objects.enqueue("site.chain", {"left": 0}, queue="mail")
        other = Job.objects.enqueue("site.meddle", {"list": []}, queue="mail")
        elsewhere = Job.objects.enqueue("site.chain", {"left": 0})

        assert drain(queues=["mail"], types=[registry.get("site.chain")]).jobs == [mail]
        assert drain(types=["site.meddle"]).jobs == [other]
        assert drain(queues=["default"]).jobs == [elsewhere]

    def test_jobs_of_a_type_without_a_handler_wait_as_they_do_for_a_worker(self):
        Job.objects.enqueue("elsewhere.build")

        assert len(drain()) == 0

    def test_a_type_that_nobody_registered_is_a_mistake(self):
        with pytest.raises(HandlerNotFound, match=r"'site\.chian'"):
            drain(types=["site.chian"])

    def test_the_first_error_is_raised_and_the_rest_waits(self):
        Job.objects.enqueue("site.permanent", priority=-1)
        Job.objects.enqueue("site.chain", {"left": 0})

        with pytest.raises(PermanentError, match="never"):
            drain()

        assert Job.objects.get(type="site.permanent").status == "failed"
        assert Job.objects.get(type="site.chain").status == "pending"

    def test_errors_are_collected_when_that_is_asked_for(self):
        Job.objects.enqueue("site.permanent", priority=-1)
        Job.objects.enqueue("site.chain", {"left": 0})
        Job.objects.enqueue("site.duplicate")

        drained = drain(raise_errors=False)

        assert drained.outcomes == {
            SettleOutcome.FAILED: 1,
            SettleOutcome.SUCCEEDED: 1,
            SettleOutcome.RETRY_SCHEDULED: 1,
        }
        assert [type(error).__name__ for error in drained.errors] == [
            "PermanentError",
            "IntegrityError",
        ]

    def test_retries_wait_for_their_time_unless_they_are_asked_for(self):
        Job.objects.enqueue("site.flaky")

        assert len(drain(raise_errors=False)) == 1
        assert len(drain(raise_errors=False)) == 0
        before = Job.objects.now()
        (run,) = drain(with_retries=True)

        assert (run.outcome, run.job.attempts) == (SettleOutcome.SUCCEEDED, 2)
        assert before < run.job.finished_at
        assert Job.objects.now() - before < timedelta(minutes=1)

    def test_all_retries_of_a_job_that_never_succeeds_come_to_an_end(self):
        Job.objects.enqueue("site.flaky", {"succeeds_at": 99})
        Job.objects.enqueue("site.chain", {"left": 0}, delay=timedelta(hours=1))

        drained = drain(with_retries=True, raise_errors=False)

        assert [run.outcome.value for run in drained] == [
            "retry-scheduled",
            "retry-scheduled",
            "failed",
        ]

    def test_scheduled_jobs_run_at_their_time_when_they_are_asked_for(self):
        late = Job.objects.enqueue("site.chain", {"left": 0}, delay=timedelta(days=2))
        soon = Job.objects.enqueue("site.chain", {"left": 1}, delay=timedelta(hours=1))

        assert len(drain(with_retries=True)) == 0
        runs = drain(with_scheduled=True).runs

        assert [run.job.started_at for run in runs] == [
            soon.scheduled_for,
            soon.scheduled_for,
            late.scheduled_for,
        ]

    def test_advancing_the_clock_makes_retries_run(self):
        with fake_clock("2026-01-01T00:00Z") as clock:
            Job.objects.enqueue("site.flaky")
            drain(raise_errors=False)
            clock.advance(minutes=1)

            assert drain().outcomes == {SettleOutcome.SUCCEEDED: 1}

    def test_a_provider_that_asked_to_wait_is_left_alone(self):
        refusals = iter([RateLimitError(retry_after=900)])

        def call(job):
            for refusal in refusals:
                raise refusal

        registry.register(Handler("site.call", call, provider="acme"))
        Job.objects.enqueue("site.call")
        Job.objects.enqueue("site.call")

        first = drain(raise_errors=False)
        assert first.outcomes == {SettleOutcome.RATE_LIMIT_DEFERRED: 1}

        assert drain(with_retries=True).outcomes == {SettleOutcome.SUCCEEDED: 2}

    def test_the_gate_of_a_provider_opens_as_the_clock_jumps(self):
        refusals = iter([RateLimitError(retry_after=900)])

        def call(job):
            for refusal in refusals:
                raise refusal

        registry.register(Handler("site.call", call, provider="acme"))
        Job.objects.enqueue("site.call")
        Job.objects.enqueue("site.call")

        drained = drain(with_retries=True, raise_errors=False)

        assert [run.outcome.value for run in drained] == [
            "rate-limit-deferred",
            "succeeded",
            "succeeded",
        ]
        ran = [run.job.started_at for run in drained]
        assert min(ran[1:]) - ran[0] >= timedelta(seconds=900)

    def test_a_handler_without_end_is_named(self):
        Job.objects.enqueue("site.endless")

        with pytest.raises(EndlessDrain, match=r"ran 20 attempts .* of site\.endless \(20\)"):
            drain(limit=20)

    def test_a_limit_that_is_just_enough_is_enough(self):
        Job.objects.enqueue("site.chain", {"left": 2})

        assert len(drain(limit=3)) == 3

    def test_what_a_handler_puts_off_until_the_commit_is_drained_too(self):
        Job.objects.enqueue("site.follow_up")

        assert [run.job.type for run in drain()] == ["site.follow_up", "site.chain"]

    def test_paused_jobs_wait(self):
        Job.objects.enqueue("site.chain", {"left": 0}, delay=60)
        Job.objects.enqueue("site.chain", {"left": 0})
        Job.objects.pause("type", "site.chain")

        assert len(drain(with_scheduled=True)) == 0

    async def test_an_async_test_awaits_it(self):
        await Job.objects.aenqueue("site.chain", {"left": 1})

        assert len(await adrain(limit=5)) == 2


class InATransaction(Draining, TestCase):
    pass


class WithoutATransaction(Draining, TransactionTestCase):
    pass


@pytest.mark.django_db
@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_runs_nothing_is_refused_and_nothing_runs(limit):
    job = Job.objects.enqueue("site.chain", {"left": 0})

    with pytest.raises(ValueError, match=rf"limit={limit}; expected 1 or more"):
        drain(limit=limit)

    job.refresh_from_db()
    assert job.status == "pending"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"queues": "default"},
            TypeError,
            "drain() got queues='default'; expected a list of names. Write queues=['default'].",
        ),
        (
            {"types": "a.b"},
            TypeError,
            "drain() got types='a.b'; expected a list of names. Write types=['a.b'].",
        ),
        (
            {"limit": 0},
            ValueError,
            "drain() got limit=0; expected 1 or more. To run nothing, do not call it.",
        ),
        (
            {"limit": None},
            TypeError,
            "drain() got limit=None; expected a whole number, 1 or more.",
        ),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_with_the_remedy(options, error, message):
    with pytest.raises(error) as caught:
        drain(**options)

    assert str(caught.value) == message
