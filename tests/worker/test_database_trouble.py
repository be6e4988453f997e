"""The database fails in every way a database fails; no job is lost, and none runs twice for it."""

import contextlib
import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction

from django_jobqueue import JobRequest
from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import JobStatus, SettleOutcome
from django_jobqueue.worker.control import run_until_stopped
from django_jobqueue.worker.pool import PoolEvent
from tests import databases
from tests.marks import on_postgresql
from tests.processes import counted, eventually
from tests.worker.conftest import wait_for

pytestmark = pytest.mark.usefixtures("transactional_db")


def terminal(**terms):
    return Job.objects.terminal().filter(**terms).count()


def statuses():
    return dict(Job.objects.values_list("type", "status"))


# A connection that breaks at the worst moment, around the real statement


class Fragile(type(Job.objects)):
    """A manager whose connection breaks when a test wants it to.

    `before` and `after` are called around the real statement, with what it was asked for and
    what it answered; an exception of theirs is what the worker sees.
    """

    def __init__(self):
        super().__init__()
        self.model = Job
        self.before = self.after = lambda *_: None

    def settle_and_claim(self, decisions, tokens, *args, **options):
        self.before(decisions, tokens)
        answer = super().settle_and_claim(decisions, tokens, *args, **options)
        self.after(decisions, answer)
        return answer


@pytest.fixture
def fragile():
    return Fragile()


def with_manager(pool, manager):
    pool._exchange._manager = manager
    return pool


def cut():
    raise OperationalError("server closed the connection unexpectedly")


def test_a_claim_that_was_cut_after_its_commit_is_found_and_charged_once(pools, fragile, notebook):
    cuts = []

    def cut_the_first_claim(decisions, answer):
        if answer[1] and not cuts:
            cuts.append([job.claim_token for job in answer[1]])
            cut()

    fragile.after = cut_the_first_claim
    jobs = [Job.objects.enqueue("test.note", notebook.payload) for _ in range(6)]
    with_manager(pools(3), fragile).start()

    eventually(lambda: terminal() == 6, "a job was forgotten")

    assert cuts
    assert set(Job.objects.values_list("status", "attempts")) == {(JobStatus.SUCCEEDED, 1)}
    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert not JobAttempt.objects.exists()


def test_a_claim_that_was_cut_before_it_was_sent_is_made_again(pools, fragile, notebook):
    cuts = []

    def cut_the_first(decisions, tokens):
        if tokens and not cuts:
            cuts.append(tokens)
            cut()

    fragile.before = cut_the_first
    Job.objects.enqueue("test.note", notebook.payload)
    with_manager(pools(2), fragile).start()

    eventually(lambda: terminal() == 1, "the job was not claimed again")
    assert (len(notebook.ids()), Job.objects.get().attempts) == (1, 1)


def test_a_settle_that_was_cut_after_its_commit_counts_as_written(pools, fragile, handler, caplog):
    @handler(max_attempts=1)
    def fail(job):
        raise ValueError

    cuts = []

    def cut_each_settle_once(decisions, answer):
        tokens = {decision.claim.token for decision in decisions}
        if tokens - set(cuts):
            cuts.extend(tokens)
            cut()

    fragile.after = cut_each_settle_once
    Job.objects.enqueue("test.echo")
    Job.objects.enqueue("fail")
    pool = with_manager(pools(1, drain=True), fragile)
    pool.start()
    wait_for(pool, PoolEvent.DRAINED)

    assert len(cuts) == 2
    counted(pool, {SettleOutcome.SUCCEEDED: 1, SettleOutcome.FAILED: 1})
    assert statuses() == {"test.echo": JobStatus.SUCCEEDED, "fail": JobStatus.FAILED}
    assert JobAttempt.objects.count() == 1
    assert "claim-lost" not in caplog.text


def test_a_settle_that_was_cut_before_it_was_sent_is_sent_again(pools, fragile, notebook):
    cuts = []

    def cut_the_first(decisions, tokens):
        if decisions and len(cuts) < 2:
            cuts.append(decisions)
            cut()

    fragile.before = cut_the_first
    Job.objects.enqueue("test.note", notebook.payload)
    pool = with_manager(pools(1, drain=True), fragile)
    pool.start()
    wait_for(pool, PoolEvent.DRAINED)

    counted(pool, {SettleOutcome.SUCCEEDED: 1})
    assert len(notebook.ids()) == 1


def test_a_cut_claim_is_handed_back_by_a_worker_that_claims_no_more(pools, fragile):
    was_cut, go_on = threading.Event(), threading.Event()

    def cut_the_claim(decisions, answer):
        if answer[1]:
            was_cut.set()
            assert go_on.wait(20)
            cut()

    fragile.after = cut_the_claim
    Job.objects.enqueue("test.echo")
    pool = with_manager(pools(2), fragile)
    pool.start()
    assert was_cut.wait(20)
    pool.finish()
    go_on.set()

    eventually(lambda: Job.objects.ready().exists(), "the claim was forgotten")

    job = Job.objects.get()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
    assert job.attempt_history.get().outcome == SettleOutcome.RELEASED


def test_a_cut_claim_is_handed_back_when_the_worker_stops_at_once(pools, fragile):
    was_cut = threading.Event()

    def cut_the_claim(decisions, answer):
        if answer[1]:
            was_cut.set()
            cut()

    fragile.after = cut_the_claim
    Job.objects.enqueue("test.echo")
    pool = with_manager(pools(1), fragile)
    pool.start()
    assert was_cut.wait(20)

    pool.stop(grace=0)

    job = Job.objects.get()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_a_job_that_was_being_claimed_while_the_worker_stopped_is_handed_back(
    pools, fragile, meeting
):
    claimed, go_on = threading.Event(), threading.Event()

    def hold_the_claim(decisions, answer):
        if answer[1]:
            claimed.set()
            assert go_on.wait(20)

    fragile.after = hold_the_claim
    Job.objects.enqueue("test.meet", meeting.payload)
    pool = with_manager(pools(1), fragile)
    pool.start()
    assert claimed.wait(20)
    stopping = threading.Thread(target=pool.stop, kwargs={"grace": 0})
    stopping.start()
    eventually(pool._exchange.halt.is_set, "the pool does not stop")
    go_on.set()
    stopping.join(20)

    job = Job.objects.get()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_a_slot_whose_decision_is_lost_to_another_worker_says_so(pools, meeting, caplog):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools()
    pool.start()
    guest = meeting.guest()
    job.refresh_from_db()
    Job.objects.release([job.claim])
    (other,) = Job.objects.claim([job.pk], {job.type: timedelta(minutes=1)})

    guest.let_go("too late")

    eventually(lambda: pool.outcomes, "the settle had no answer")
    counted(pool, {SettleOutcome.CLAIM_LOST: 1})
    job.refresh_from_db()
    assert (job.status, job.result, job.claim) == (JobStatus.RUNNING, None, other.claim)
    assert f"Job {job.pk} (test.meet) attempt 1: claim-lost" in caplog.text


def test_a_job_that_was_deleted_while_it_ran_harms_nobody(pools, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools()
    pool.start()
    guest = meeting.guest()
    Job.objects.filter(pk=job.pk).delete()
    behind = Job.objects.enqueue("test.echo")

    guest.let_go()

    eventually(lambda: terminal(pk=behind.pk), "the slot stands still")
    assert pool.outcomes[SettleOutcome.CLAIM_LOST] == 1


# What a PostgreSQL server does


@contextlib.contextmanager
def execute_around(start, end):
    with connection.cursor() as cursor:
        for statement in start:
            cursor.execute(statement)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for statement in end:
                cursor.execute(statement)


def refusing(condition, sqlstate="22000"):
    """Let the database refuse updates of jobs for which `condition` holds."""
    table = Job._meta.db_table
    return execute_around(
        [
            f"""
            CREATE FUNCTION refuse_a_job() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF {condition} THEN
                    RAISE EXCEPTION 'not this one' USING ERRCODE = '{sqlstate}';
                END IF;
                RETURN NEW;
            END $$""",
            f"""
            CREATE TRIGGER refuse_a_job BEFORE UPDATE ON {table}
            FOR EACH ROW EXECUTE FUNCTION refuse_a_job()""",
        ],
        [f"DROP TRIGGER refuse_a_job ON {table}", "DROP FUNCTION refuse_a_job()"],
    )


@on_postgresql
@pytest.mark.parametrize("sqlstate", ["22000", "23514", "54000", "P0001"])
def test_what_the_database_refuses_fails_that_job_and_no_other(pools, meeting, sqlstate):
    """The settles of all slots are one group: the handlers are let go while it is held up."""
    bad = Job.objects.enqueue("test.meet", meeting.payload)
    others = [Job.objects.enqueue("test.meet", meeting.payload) for _ in range(3)]
    pool = pools(4, drain=True)
    condition = f"OLD.id = '{bad.pk}' AND NEW.status = 'succeeded'"
    with refusing(condition, sqlstate):
        pool.start()
        guests = [meeting.guest() for _ in range(4)]
        for guest in guests:
            guest.let_go(guest.job_id)
        wait_for(pool, PoolEvent.DRAINED)

    bad.refresh_from_db()
    assert bad.status == JobStatus.FAILED
    assert "not this one" in bad.last_error
    attempt = bad.attempt_history.get()
    assert attempt.outcome == SettleOutcome.FAILED
    assert "not this one" in attempt.message
    for job in others:
        job.refresh_from_db()
        assert (job.status, job.result) == (JobStatus.SUCCEEDED, str(job.pk))
    counted(pool, {SettleOutcome.SUCCEEDED: 3, SettleOutcome.FAILED: 1})


@on_postgresql
def test_a_job_whose_row_takes_no_write_at_all_delays_nobody(pools, meeting):
    bad = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(2)
    pool.start()
    guest = meeting.guest()
    with refusing(f"OLD.id = '{bad.pk}'"):
        guest.let_go()
        jobs = [Job.objects.enqueue("test.echo") for _ in range(30)]

        eventually(lambda: terminal(type="test.echo") == len(jobs), "the others stand still", 10)

        bad.refresh_from_db()
        assert bad.status == JobStatus.RUNNING


@on_postgresql
def test_a_row_locked_by_somebody_stalls_nobody_and_is_written_afterwards(pools, meeting):
    locked = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(1)
    pool.start()
    guest = meeting.guest()
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=locked.pk)
        guest.let_go("written later")
        behind = in_another_thread(lambda: Job.objects.enqueue("test.echo"))
        # Two jobs: the second proves that the first one's settle did not wait either.
        more = in_another_thread(lambda: Job.objects.enqueue("test.echo"))

        eventually(lambda: terminal(pk__in=[behind.pk, more.pk]) == 2, "the slot waits", 20)
        assert not terminal(pk=locked.pk)

    eventually(lambda: terminal(pk=locked.pk), "the settle was forgotten")
    locked.refresh_from_db()
    assert (locked.status, locked.result) == (JobStatus.SUCCEEDED, "written later")
    counted(pool, {SettleOutcome.SUCCEEDED: 3})


@on_postgresql
def test_a_worker_that_used_up_its_jobs_waits_for_a_settle_that_a_lock_delays(pools, meeting):
    locked = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(1, max_jobs=1)
    ended = threading.Thread(
        target=run_until_stopped,
        args=(pool, 20),
        kwargs={"on_start": lambda: None, "on_stop": lambda _: None},
    )
    ended.start()
    guest = meeting.guest()
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=locked.pk)
        guest.let_go("written later")
        # The slot has ended, and its settle was tried while the row was locked.
        eventually(lambda: pool._slots[0].finished, "the slot did not end")
        ended.join(2)
    ended.join(20)

    locked.refresh_from_db()
    assert (locked.status, locked.result) == (JobStatus.SUCCEEDED, "written later")
    counted(pool, {SettleOutcome.SUCCEEDED: 1})


def in_another_thread(call):
    answers = []

    def run():
        try:
            answers.append(call())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return answers[0]


def terminate_all_others():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0]


@on_postgresql
def test_terminated_connections_cost_no_job_and_start_none_twice(pools, notebook):
    rounds, number = 8, 400
    jobs = Job.objects.enqueue_many(requests("test.note", notebook.payload, number))
    pool = pools(4)
    pool.start()
    for _ in range(rounds):
        before = len(notebook.ids())
        eventually(
            lambda before=before: len(notebook.ids()) > before or len(notebook.ids()) == number,
            "the worker stands still",
        )
        terminate_all_others()

    eventually(lambda: terminal() == number, f"{number - terminal()} jobs were not settled")

    assert set(Job.objects.values_list("status", "attempts")) == {(JobStatus.SUCCEEDED, 1)}
    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    counted(pool, {SettleOutcome.SUCCEEDED: number})
    assert not JobAttempt.objects.exists()


def requests(job_type, payload, number):
    return [JobRequest(job_type, payload) for _ in range(number)]


@contextlib.contextmanager
def database_away():
    """Let the server refuse and cut every connection to the test's database but the test's own."""
    import psycopg

    settings = connection.settings_dict
    elsewhere = databases.url_of({**settings, "NAME": "postgres"})
    name = settings["NAME"]
    connection.ensure_connection()
    with psycopg.connect(elsewhere, autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            terminate_all_others()
            yield
        finally:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@on_postgresql
def test_a_decision_is_kept_while_the_database_is_away(pools, meeting):
    Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(1)
    pool.start()
    guest = meeting.guest()
    with database_away():
        guest.let_go("kept")
        eventually(lambda: not pool._exchange.all_written, "the slot did not hand in its decision")
        assert not terminal()

    eventually(lambda: terminal() == 1, "the decision was not written")
    job = Job.objects.get()
    assert (job.status, job.result, job.attempts) == (JobStatus.SUCCEEDED, "kept", 1)


@on_postgresql
def test_an_idle_worker_finds_work_after_the_database_was_away(pools, caplog):
    pool = pools(2)
    pool.start()
    with database_away():
        eventually(lambda: "tries again" in caplog.text, "the worker did not notice")
    job = Job.objects.enqueue("test.echo")
    later = Job.objects.enqueue("test.echo", delay=0.01)

    eventually(lambda: terminal(pk__in=[job.pk, later.pk]) == 2, "the worker did not recover")


@on_postgresql
def test_a_decision_is_given_up_after_ten_leases(pools, meeting, jobqueue, caplog):
    jobqueue(LEASE_CAP=0.15, POLL_INTERVAL=0.05)
    Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(1)
    pool.start()
    guest = meeting.guest()
    with database_away():
        guest.let_go()
        eventually(lambda: pool.outcomes, "the decision was not given up")

        counted(pool, {SettleOutcome.WRITE_FAILED: 1})
        assert pool._exchange.all_written
        assert pool.busy == 0
    job = Job.objects.enqueue("test.echo")
    eventually(lambda: terminal(pk=job.pk), "the worker did not recover")
    assert Job.objects.get(type="test.meet").status == JobStatus.RUNNING
    assert "attempt 1: write-failed" in caplog.text


@on_postgresql
def test_a_stop_is_bounded_while_the_database_is_away(pools, meeting):
    Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(1)
    pool.start()
    meeting.guest()
    with database_away():
        before = time.monotonic()
        assert pool.stop(grace=0.5) == 0
        assert time.monotonic() - before < 5.5

    job = Job.objects.get()
    assert (job.status, job.attempts) == (JobStatus.RUNNING, 1)


@on_postgresql
def test_a_table_that_is_locked_for_a_while_is_waited_for(pools):
    """A migration takes such a lock."""
    job = Job.objects.enqueue("test.echo")
    pool = pools(1)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {Job._meta.db_table} IN ACCESS EXCLUSIVE MODE")
        pool.start()
        eventually(waiting_sessions, "the worker did not come to the table")

    eventually(lambda: terminal(pk=job.pk), "the job did not run")


def waiting_sessions():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0]
