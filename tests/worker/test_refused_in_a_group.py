"""A settle that the database refuses neither fails nor delays those in its group."""

import contextlib
import re
from datetime import timedelta

import pytest
from django.db import connection

from django_jobqueue import JobRequest, jsonvalues
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.marks import on_postgresql
from tests.processes import counted, eventually
from tests.worker.test_database_trouble import execute_around

SLOTS = 16
RESEND = timedelta(seconds=1)
"""What is not refused is settled sooner than a settle is ever sent again."""

pytestmark = [on_postgresql, pytest.mark.usefixtures("transactional_db")]


# What a site's own schema refuses, and what no jsonb holds

TABLE = Job._meta.db_table
A_CHECK = (
    [f"ALTER TABLE {TABLE} ADD CONSTRAINT picky CHECK (result ->> 'picky' <> 'bad')"],
    [f"ALTER TABLE {TABLE} DROP CONSTRAINT picky"],
)
AN_INDEX_THAT_CASTS = (
    [f"CREATE INDEX picky ON {TABLE} ((CAST(result ->> 'picky' AS integer)))"],
    ["DROP INDEX picky"],
)
A_UNIQUE_INDEX = (
    [f"CREATE UNIQUE INDEX picky ON {TABLE} ((result ->> 'picky'))"],
    ["DROP INDEX picky"],
)


@contextlib.contextmanager
def held_up(job):
    """Hold up the statement that settles `job`, and with it the thread that settles for all."""
    body = f"""
    BEGIN
        IF OLD.id = '{job.pk}' AND OLD.status = 'running' AND NEW.status <> 'running' THEN
            PERFORM pg_advisory_xact_lock(4711);
        END IF;
        RETURN NEW;
    END"""
    with (
        execute_around(
            [
                f"CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $${body}$$",
                f"""
                CREATE TRIGGER hold_up BEFORE UPDATE ON {TABLE}
                FOR EACH ROW EXECUTE FUNCTION hold_up()""",
            ],
            [f"DROP TRIGGER hold_up ON {TABLE}", "DROP FUNCTION hold_up()"],
        ),
        execute_around(["SELECT pg_advisory_lock(4711)"], ["SELECT pg_advisory_unlock_all()"]),
    ):
        yield


def waits_for_the_lock():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database AS base ON base.oid = database"
            " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
        )
        return cursor.fetchone()[0]


def settle_at_once(pool, meeting, answers):
    """Let a handler for each answer return it, so that all are settled in one group.

    Returns their jobs in the order of the answers.
    """
    first = Job.objects.enqueue("test.meet", meeting.payload)
    pool.start()
    gate = meeting.guest()
    with held_up(first):
        Job.objects.enqueue_many([JobRequest("test.meet", meeting.payload) for _ in answers])
        guests = [meeting.guest() for _ in answers]
        gate.let_go()
        eventually(waits_for_the_lock, "the first job is not settled")
        for guest, answer in zip(guests, answers, strict=True):
            guest.let_go(answer)
        eventually(lambda: not pool.busy, "a handler did not return")
    ids = [guest.job_id for guest in guests]
    eventually(lambda: Job.objects.terminal().filter(pk__in=ids).count() == len(ids), "not settled")
    return [Job.objects.get(pk=job_id) for job_id in ids]


def assert_settled_together(jobs):
    assert {job.status for job in jobs} == {JobStatus.SUCCEEDED}
    ends = [job.finished_at for job in jobs]
    assert max(ends) - min(ends) < RESEND


def assert_failed(job, words):
    assert (job.status, job.result) == (JobStatus.FAILED, None)
    assert words in job.last_error
    attempt = job.attempt_history.get()
    assert attempt.outcome == SettleOutcome.FAILED
    assert words in attempt.message


def test_without_a_refusal_they_are_one_group(pools, meeting):
    """This is what makes the tests below tests of a group."""
    jobs = settle_at_once(pools(SLOTS + 1), meeting, list(range(SLOTS)))

    assert_settled_together(jobs)
    # One statement; a handler that returned while the first was let go may come with the next.
    assert len({job.finished_at for job in jobs}) <= 2


@pytest.mark.parametrize(
    ("schema", "good", "words"),
    [
        pytest.param(A_CHECK, "good", 'violates check constraint "picky"', id="check"),
        pytest.param(AN_INDEX_THAT_CASTS, "7", "invalid input syntax", id="cast"),
    ],
)
@pytest.mark.parametrize("place", [0, 7, SLOTS - 1])
def test_fifteen_others_succeed_at_once(pools, meeting, schema, good, words, place):
    answers = [{"picky": good, "number": number} for number in range(SLOTS)]
    answers[place] = {"picky": "bad"}
    pool = pools(SLOTS + 1)
    with execute_around(*schema):
        jobs = settle_at_once(pool, meeting, answers)

    bad = jobs.pop(place)
    assert_failed(bad, words)
    assert_settled_together(jobs)
    assert [job.result for job in jobs] == answers[:place] + answers[place + 1 :]
    counted(pool, {SettleOutcome.SUCCEEDED: SLOTS, SettleOutcome.FAILED: 1})


def test_several_are_refused_each_for_itself(pools, meeting):
    answers = [{"picky": "bad" if number % 4 == 1 else "good"} for number in range(SLOTS)]
    pool = pools(SLOTS + 1)
    with execute_around(*A_CHECK):
        jobs = settle_at_once(pool, meeting, answers)

    bad = [job for job, answer in zip(jobs, answers, strict=True) if answer["picky"] == "bad"]
    for job in bad:
        assert_failed(job, "violates check constraint")
    assert_settled_together([job for job in jobs if job not in bad])
    counted(pool, {SettleOutcome.SUCCEEDED: SLOTS - 3, SettleOutcome.FAILED: 4})


def test_of_two_that_exclude_each_other_one_succeeds(pools, meeting):
    answers = [{"picky": str(min(number, SLOTS - 2))} for number in range(SLOTS)]
    with execute_around(*A_UNIQUE_INDEX):
        *others, one, two = settle_at_once(pools(SLOTS + 1), meeting, answers)
        failed, succeeded = sorted([one, two], key=lambda job: job.status)

    assert_failed(failed, "duplicate key value")
    assert_settled_together([*others, succeeded])


def test_what_no_jsonb_holds_is_refused_by_the_database_too(pools, meeting, monkeypatch):
    """The worker checks results before SQL; should that miss one, the database's word counts."""
    monkeypatch.setattr(jsonvalues, "UNSTORABLE", re.compile("(?!)"))
    answers = [f"text {number}" for number in range(SLOTS)]
    answers[3] = "nul \0"
    pool = pools(SLOTS + 1)
    jobs = settle_at_once(pool, meeting, answers)

    assert_failed(jobs.pop(3), "unsupported Unicode escape sequence")
    assert_settled_together(jobs)


def test_the_slots_go_on(pools, meeting):
    pool = pools(SLOTS + 1)
    with execute_around(*A_CHECK):
        settle_at_once(pool, meeting, [{"picky": "bad"}] * SLOTS)
        more = [Job.objects.enqueue("test.echo", {"picky": "good"}) for _ in range(2 * SLOTS)]
        found = Job.objects.filter(pk__in=[job.pk for job in more], status=JobStatus.SUCCEEDED)
        eventually(lambda: found.count() == len(more), "the slots stand still")
