"""No loop of a worker dies: each logs what went wrong and goes on."""

import threading
from uuid import uuid4

import pytest
from django.db import connection, transaction

from django_jobqueue.hints import Hints
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from django_jobqueue.worker.housekeeping import Housekeeping, Promotion
from django_jobqueue.worker.loops import Loop
from tests.marks import on_postgresql
from tests.processes import eventually

FAULTS = [ValueError, SystemExit, KeyboardInterrupt, MemoryError]


class Stumbling(Loop):
    """A loop whose first two rounds fail."""

    def __init__(self, error):
        super().__init__("stumbling", threading.Event())
        self.error = error
        self.rounds = 0
        self.cleaned_up = False

    def step(self):
        self.rounds += 1
        if self.rounds <= 2:
            raise self.error("as asked")
        return False

    def ended(self):
        self.cleaned_up = True


@pytest.mark.parametrize("error", FAULTS)
def test_a_step_that_fails_is_logged_and_the_loop_goes_on(caplog, error):
    loop = Stumbling(error)
    loop.start()
    loop.join(20)

    assert (loop.rounds, loop.finished, loop.died, loop.cleaned_up) == (3, True, False, True)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "as asked" in caplog.text


def test_a_stop_does_not_wait_for_the_pause_after_a_failure():
    loop = Stumbling(ValueError)
    loop.halt.set()
    loop._backoff = 600
    loop.start()
    loop.join(5)

    assert not loop.is_alive()


def test_a_loop_that_never_started_has_not_died():
    assert not Stumbling(ValueError).died


@pytest.fixture
def housekeeping(transactional_db):
    made = []

    def run(*chores):
        made.append(Housekeeping(chores, "default"))
        made[0].start()
        return made[0]

    yield run
    for thread in made:
        thread.shut_down()
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("error", FAULTS)
def test_a_chore_that_fails_is_logged_and_tried_again(housekeeping, caplog, error):
    again = threading.Event()
    other = threading.Event()
    calls = []

    def failing():
        calls.append(1)
        if len(calls) == 1:
            raise error("as asked")
        again.set()
        return 60.0

    def healthy():
        other.set()
        return 60.0

    housekeeping(failing, healthy)

    assert again.wait(20), "the chore did not come again"
    assert other.wait(20), "the other chore did not run"
    assert "as asked" in caplog.text


def test_a_chore_that_is_hurried_while_it_runs_comes_again(housekeeping):
    inside, go_on, again = threading.Event(), threading.Event(), threading.Event()

    def chore():
        if inside.is_set():
            again.set()
            return 600.0
        inside.set()
        go_on.wait(20)
        return 600.0

    loop = housekeeping(chore)
    assert inside.wait(20)
    loop.hurry(chore)
    go_on.set()

    assert again.wait(20)


def test_a_failing_query_of_a_chore_does_not_spoil_the_next(housekeeping, caplog):
    done = threading.Event()
    calls = []

    def chore():
        calls.append(1)
        if len(calls) == 1:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT no_such_column")
        assert Job.objects.count() == 0
        done.set()
        return 600.0

    housekeeping(chore)

    assert done.wait(20), caplog.text


@on_postgresql
def test_a_due_job_that_somebody_has_locked_is_not_asked_for_without_a_pause(transactional_db):
    job = Job.objects.enqueue("test.echo", delay=0.001)
    promotion = Promotion(Job.objects, Hints(), lambda: None, poll_interval=5)
    eventually(lambda: Job.objects.seconds_until_due() <= 0, "the job did not become due")
    pauses = []

    with transaction.atomic():
        Job.objects.select_for_update().get(pk=job.pk)
        elsewhere = threading.Thread(target=lambda: pauses.append(in_thread(promotion)))
        elsewhere.start()
        elsewhere.join(20)

    assert pauses[0] > 0
    assert Job.objects.scheduled().count() == 1
    promotion()
    assert Job.objects.ready().count() == 1


def in_thread(call):
    try:
        return call()
    finally:
        connection.close()


def test_a_slot_whose_round_fails_goes_on_and_its_job_is_not_lost(pools, caplog):
    """The round fails where nothing is expected to: after the handler's end was decided."""
    pool = pools(1)
    run, calls = pool.run, []

    def fail_once(running):
        calls.append(running.claim)
        if len(calls) == 1:
            raise RuntimeError("as asked")
        return run(running)

    pool.run = fail_once
    first = Job.objects.enqueue("test.echo")
    second = Job.objects.enqueue("test.echo")
    pool.start()

    eventually(lambda: Job.objects.terminal().filter(pk=second.pk).exists(), "the slot is dead")

    assert "as asked" in caplog.text
    pool.stop(grace=20)
    first.refresh_from_db()
    # Handed back at the latest when the worker stops: nothing runs under its claim.
    assert first.status != JobStatus.RUNNING


def test_the_exchange_goes_on_after_a_fault_that_is_no_database_error(pools, caplog):
    pool = pools(1)
    terms, calls = pool.eligibility.terms, []

    class FailOnce(type(pool.eligibility)):
        def terms(self):
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("as asked")
            return terms()

    pool._exchange._eligibility = FailOnce()
    job = Job.objects.enqueue("test.echo")
    pool.start()

    eventually(lambda: Job.objects.terminal().filter(pk=job.pk).exists(), "the exchange is dead")
    assert "as asked" in caplog.text


def test_a_pool_survives_the_end_of_its_event_loop(pools, handler):
    """A handler may stop the loop it runs on."""
    import asyncio

    @handler(max_attempts=2)
    async def stop_the_loop(job):
        if job.attempts == 1:
            asyncio.get_running_loop().stop()
        return "done"

    Job.objects.enqueue("stop_the_loop")
    job = Job.objects.enqueue("test.async", {"token": str(uuid4())})
    pools(1).start()

    eventually(lambda: Job.objects.terminal().count() == 2, "the event loop is dead")
    job.refresh_from_db()
    assert job.result == job.payload
