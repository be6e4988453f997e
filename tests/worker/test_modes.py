"""Which jobs a worker claims: its mode, what nodes are offered, what is paused."""

import pytest

from django_jobqueue import JobHandler, registry
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome, WorkerMode
from tests.managers.rows import claimed, now
from tests.processes import eventually

QUICK = {"POLL_INTERVAL": 0.05}


class Offered(JobHandler):
    """What a node may run, while it is offered."""

    type = "offered"
    result_schema = {"type": "object"}  # noqa: RUF012 (a class variable of the base)

    def __init__(self):
        self.offered = True

    def process(self, job):
        return "on the server"

    def persist_result(self, job, result):
        raise AssertionError("only a node's result is persisted")

    def node_offload_enabled(self):
        return self.offered


@pytest.fixture
def offered(handler):
    """A handler that is offered to nodes; `handler` takes it out of the registry again."""
    made = Offered()
    registry.register(made)
    return made


@pytest.fixture
def echo():
    """Run a job of another type, which proves that the pool had a look."""

    def run():
        for _ in range(2):
            job = Job.objects.enqueue("test.echo")
            eventually(succeeded(job), "the pool stands still")

    return run


def succeeded(*jobs):
    ids = [job.pk for job in jobs]
    found = Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED)
    return lambda: found.count() == len(ids)


def untouched(*jobs):
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
    return set(rows.values_list("status", "attempts")) == {(JobStatus.PENDING, 0)}


class TestSystem:
    @pytest.fixture(autouse=True)
    def _system(self, jobqueue):
        jobqueue(**QUICK, WORKER_MODE="system", NODES_ENABLED=True)

    def test_follows_what_is_offered_from_claim_to_claim(self, pools, offered, echo):
        pools(1).start()
        offered.offered = False
        job = Job.objects.enqueue("offered")
        eventually(succeeded(job), "a type that is not offered was left")

        offered.offered = True
        left = Job.objects.enqueue("offered", priority=-1)
        echo()
        assert untouched(left)

        offered.offered = False
        eventually(succeeded(left), "a type that is offered no more was left")

    def test_runs_everything_while_there_are_no_nodes(self, pools, offered, jobqueue):
        jobqueue(**QUICK, WORKER_MODE="system", NODES_ENABLED=False)
        jobs = [Job.objects.enqueue(name) for name in ("offered", "test.echo", "test.async")]
        pools(1).start()

        eventually(succeeded(*jobs), "a job was left for nodes that are not there")

    @pytest.mark.parametrize("extra", ["offered, no.such.type", ["offered", "no.such.type"]])
    def test_runs_extra_types_too(self, pools, offered, jobqueue, caplog, extra):
        jobqueue(**QUICK, WORKER_MODE="system", NODES_ENABLED=True, SYSTEM_MODE_EXTRA_TYPES=extra)
        job = Job.objects.enqueue("offered")
        pools(1).start()

        eventually(succeeded(job), "the extra type was left")
        assert caplog.text.count("no.such.type") == 1

    def test_a_handler_that_cannot_say_whether_it_is_offered_stays_here(self, pools, offered, echo):
        def fail():
            raise ValueError("no idea")

        offered.node_offload_enabled = fail
        job = Job.objects.enqueue("offered")
        pools(1).start()

        eventually(succeeded(job), "the job was left")

    def test_all_runs_what_is_offered_too(self, pools, offered, jobqueue):
        jobqueue(**QUICK, WORKER_MODE="all", NODES_ENABLED=True)
        job = Job.objects.enqueue("offered")
        pools(1).start()

        eventually(succeeded(job), "the job was left")


class TestTheSetting:
    def test_a_misspelt_word_warns_once_and_runs(self, pools, jobqueue, echo, caplog):
        jobqueue(**QUICK, WORKER_MODE="sytem")
        pools(2).start()
        echo()

        [message] = [m for m in caplog.messages if "sytem" in m]
        assert "expected all, system or off" in message

    @pytest.mark.parametrize("word", [" All", "SYSTEM ", None])
    def test_is_trimmed_and_read_in_any_case(self, pools, jobqueue, echo, caplog, word):
        jobqueue(**QUICK, WORKER_MODE=word)
        pools(1).start()
        echo()

        assert "WORKER_MODE" not in caplog.text

    def test_a_callable_is_asked_at_every_claim(self, pools, jobqueue, echo):
        modes = {"now": "all"}
        jobqueue(**QUICK, WORKER_MODE=lambda: modes["now"])
        pool = pools(1)
        pool.start()
        echo()

        modes["now"] = " Off"
        eventually(lambda: pool.eligibility.mode is WorkerMode.OFF, "the mode is not read")
        job = Job.objects.enqueue("test.echo")
        # It is in time that nothing happens: several polls pass.
        scheduled = Job.objects.enqueue("test.echo", delay=0.3)
        eventually(lambda: promoted(scheduled), "nothing was promoted")
        assert untouched(job, scheduled)

        modes["now"] = "all"
        eventually(succeeded(job, scheduled), "the mode is not read again")

    def test_a_callable_that_fails_runs_all_and_warns_once(self, pools, jobqueue, echo, caplog):
        def broken():
            raise OSError("no flag service")

        jobqueue(**QUICK, WORKER_MODE=broken)
        pools(1).start()
        echo()

        assert sum("callable" in message for message in caplog.messages) == 1


def promoted(job):
    return Job.objects.filter(pk=job.pk, scheduled_for=None).exists()


class TestOff:
    @pytest.fixture(autouse=True)
    def _off(self, jobqueue):
        jobqueue(**QUICK, WORKER_MODE="off", REAPER_INTERVAL=0.1)

    def test_claims_nothing_but_promotes_and_reaps(self, pools):
        dead = claimed("test.echo", lease_seconds=0.3, lease_expires_at=now())
        spent = claimed(
            "test.echo", lease_seconds=0.3, lease_expires_at=now(), attempts=3, max_attempts=3
        )
        ready = Job.objects.enqueue("test.echo")
        scheduled = Job.objects.enqueue("test.echo", delay=0.2)
        pool = pools(2)
        pool.start()

        eventually(lambda: promoted(scheduled), "nothing was promoted")
        eventually(lambda: not Job.objects.running().exists(), "nothing was reaped", 10)

        dead.refresh_from_db()
        spent.refresh_from_db()
        assert (dead.status, dead.attempts) == (JobStatus.PENDING, 1)
        assert spent.status == JobStatus.FAILED
        assert untouched(ready, scheduled)
        assert pool.outcomes == {}

    def test_the_option_fixes_the_mode(self, pools, echo):
        pools(1, mode=WorkerMode.ALL).start()

        echo()


class TestProcesses:
    def test_the_option_fixes_the_mode(self, site):
        job = Job.objects.enqueue("test.echo")
        scheduled = Job.objects.enqueue("test.echo", delay=0.2)
        with site(WORKER_MODE="all").worker("--mode", "off") as worker:
            worker.wait_until_started()
            assert "mode off" in worker.output
            eventually(lambda: promoted(scheduled), "nothing was promoted")
            assert untouched(job, scheduled)

    def test_a_wrong_option_is_refused_with_the_words_there_are(self, site):
        done = site().manage("run_jobworker", "--mode", "sytem")

        assert done.returncode != 0
        assert "all|system|off" in done.stderr

    def test_a_pause_outlasts_a_restart(self, site, meeting):
        """What runs when it is paused finishes."""
        running = Job.objects.enqueue("test.meet", meeting.payload)
        waiting = Job.objects.enqueue("test.meet", meeting.payload)
        with site().worker("--concurrency", "1") as worker:
            guest = meeting.guest()
            Job.objects.pause("type", "test.meet", reason="maintenance")
            guest.let_go("finished")
            eventually(succeeded(running), "the running job did not finish")
            worker.terminate()
            assert worker.exit_code() == 0
        with site().worker("--concurrency", "1") as worker:
            other = Job.objects.enqueue("test.echo")
            eventually(succeeded(other), "the other type is paused too")
            assert untouched(waiting)
            assert meeting.nobody_waits()

            Job.objects.resume("type", "test.meet")
            meeting.guest().let_go()
            eventually(succeeded(waiting), "the resumed type does not run")

    def test_a_paused_queue_is_skipped(self, site):
        Job.objects.pause("queue", "slow")
        waiting = Job.objects.enqueue("test.echo", queue="slow")
        Job.objects.enqueue("test.echo")
        with site().worker("--drain") as worker:
            assert worker.exit_code() == 0

        assert worker.last_line == "Left: 1 (1 paused)."
        assert untouched(waiting)


def test_the_claim_writes_the_attempts_of_the_type_on_the_row(pools, handler, jobqueue):
    """So that a reaper that does not know the type obeys it."""
    jobqueue(**QUICK, MAX_ATTEMPTS=7)
    handler(name="own", max_attempts=2)(lambda job: job.max_attempts)
    handler(name="of-the-site")(lambda job: job.max_attempts)
    jobs = [Job.objects.enqueue(name) for name in ("own", "of-the-site")]
    pools(1).start()
    eventually(succeeded(*jobs), "not every job ran")

    found = {job.type: (job.max_attempts, job.result) for job in Job.objects.all()}
    assert found == {"own": (2, 2), "of-the-site": (7, 7)}


def test_a_job_that_may_start_once_is_failed_by_a_process_that_does_not_know_it(site, meeting):
    """Its worker is killed; the other process has no handler for it, and another default."""
    job = Job.objects.enqueue("test.meet", meeting.payload)
    with site(MAX_ATTEMPTS=1, LEASE_CAP=0.6).worker() as worker:
        meeting.guest()
        worker.kill()
    stranger = site("INSTALLED_APPS.remove('tests.testapp')", REAPER_INTERVAL=0.1, MAX_ATTEMPTS=5)
    with stranger.worker():
        eventually(lambda: Job.objects.terminal().exists(), "the job was not reaped", 15)

    job.refresh_from_db()
    assert (job.status, job.attempts, job.max_attempts) == (JobStatus.FAILED, 1, 1)
    assert job.attempt_history.get().outcome == SettleOutcome.REAPED
    assert "died" in job.last_error
