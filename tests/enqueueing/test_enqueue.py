import enum
import uuid
from datetime import datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, set_span_in_context
from opentelemetry.trace.span import INVALID_SPAN_CONTEXT

from django_jobqueue import JobRequest, registry
from django_jobqueue.enqueueing import INSERT_TRIES, default_dedup_key
from django_jobqueue.exceptions import EnqueueConflict
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.claims import claimed, failure, row, success
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql

pytestmark = pytest.mark.django_db
MARGIN = timedelta(seconds=30)


class OldType(str, enum.Enum):  # noqa: UP042 (the kind before StrEnum)
    ECHO = "test.echo"


@pytest.fixture
def session():
    """Another session of the database."""
    other = connections.create_connection("default")
    yield other
    other.close()


def test_a_job_is_a_ready_row_with_the_defaults():
    job = Job.objects.enqueue("test.echo")

    stored = row(job)
    assert (stored["type"], stored["status"], stored["payload"]) == (
        "test.echo",
        JobStatus.PENDING,
        {},
    )
    assert (stored["queue"], stored["priority"], stored["reason"]) == ("default", 0, "")
    assert (stored["attempts"], stored["rate_limit_hits"], stored["last_error"]) == (0, 0, "")
    assert (stored["executor"], stored["worker"]) == ("", "")
    assert stored["created_at"] == stored["ready_at"]
    unset = set(stored) - {
        *("id", "type", "status", "payload", "queue", "priority", "reason", "attempts"),
        *("rate_limit_hits", "last_error", "executor", "worker", "created_at", "ready_at"),
    }
    assert {name: stored[name] for name in unset} == dict.fromkeys(unset)


def test_every_option_is_stored():
    due = timezone.now() + timedelta(days=1)

    job = Job.objects.enqueue(
        "test.echo",
        {"n": 1},
        queue="mail",
        priority=-3,
        subject=("report", 7),
        dedup_key="mine",
        scheduled_for=due,
        reason="asked for",
        org_id="acme",
    )

    stored = row(job)
    assert (stored["payload"], stored["queue"], stored["priority"]) == ({"n": 1}, "mail", -3)
    assert (stored["subject_type"], stored["subject_id"]) == ("report", "7")
    assert (stored["dedup_key"], stored["org_id"], stored["reason"]) == (
        "mine",
        "acme",
        "asked for",
    )
    assert stored["scheduled_for"] == stored["ready_at"] == due


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delay": 60},
        {"scheduled_for": datetime(2050, 1, 1, tzinfo=timezone.get_default_timezone())},
    ],
    ids=["now", "delay", "scheduled_for"],
)
def test_the_returned_job_equals_its_row(options):
    job = Job.objects.enqueue("test.echo", {"n": (1, 2)}, subject=("report", 7), **options)

    assert {name: getattr(job, name) for name in row(job)} == row(job)
    assert isinstance(job.created_at, datetime)


def test_the_returned_job_counts_as_saved():
    job = Job.objects.enqueue("test.echo")

    assert job._state.adding is False
    assert job._state.db == "default"


def test_ids_grow_with_age():
    ids = [Job.objects.enqueue("test.echo").pk for _ in range(5)]

    assert ids == sorted(ids)
    assert {job_id.version for job_id in ids} == {7}


@pytest.mark.parametrize("delay", [90, 90.0, timedelta(seconds=90)])
def test_a_delay_counts_from_now_by_the_database_s_clock(delay):
    job = Job.objects.enqueue("test.echo", delay=delay)

    assert job.scheduled_for == job.ready_at == job.created_at + timedelta(seconds=90)
    assert abs(job.created_at - timezone.now()) < MARGIN


@pytest.mark.parametrize("subject_id", [7, "7"])
def test_a_whole_number_as_subject_id_is_stored_as_text(subject_id):
    assert (
        row(Job.objects.enqueue("test.echo", subject=("report", subject_id)))["subject_id"] == "7"
    )


def test_a_uuid_as_subject_id_is_stored_as_text():
    subject_id = uuid.uuid4()

    job = Job.objects.enqueue("test.echo", subject=["report", subject_id])

    assert row(job)["subject_id"] == str(subject_id)


def test_an_enum_member_is_stored_as_its_value():
    job = Job.objects.enqueue(OldType.ECHO, queue=OldType.ECHO, reason=OldType.ECHO)

    assert (row(job)["type"], row(job)["queue"], row(job)["reason"]) == ("test.echo",) * 3
    assert type(job.type) is str


def test_the_payload_is_a_copy():
    payload = {"list": [1]}

    job = Job.objects.enqueue("test.echo", payload)
    payload["list"].append(2)

    assert job.payload == {"list": [1]}


@pytest.mark.parametrize("text", ["x" * 200, "ü" * 200, "\U0001f600" * 200])
def test_the_longest_texts_fit(text):
    job = Job.objects.enqueue(
        text,
        queue=text[:100],
        reason=text,
        dedup_key=text + text,
        subject=(text[:100], text),
        org_id=text[:100],
        priority=2**15 - 1,
    )

    assert row(job)["type"] == text


@pytest.mark.parametrize("priority", [-(2**15), 2**15 - 1])
def test_the_most_and_the_least_urgent_priority_fit(priority):
    assert row(Job.objects.enqueue("test.echo", priority=priority))["priority"] == priority


def test_a_type_that_nobody_knows_may_be_enqueued():
    assert registry.get("another.deployment") is None

    assert Job.objects.enqueue("another.deployment").pk


# Dedup keys


def test_without_subject_there_is_no_key():
    assert Job.objects.enqueue("test.echo").dedup_key is None
    assert Job.objects.enqueue("test.echo") != Job.objects.enqueue("test.echo")


def test_one_type_about_one_subject_is_one_job():
    job = Job.objects.enqueue("test.echo", subject=("report", 7))

    assert Job.objects.enqueue("test.echo", subject=("report", "7")) == job
    assert Job.objects.enqueue("test.echo", subject=("report", 8)) != job
    assert Job.objects.enqueue("test.fail", subject=("report", 7)) != job


def test_a_key_of_one_s_own_comes_before_the_subject_s():
    job = Job.objects.enqueue("test.echo", subject=("report", 7), dedup_key="mine")

    assert job.dedup_key == "mine"
    assert Job.objects.enqueue("test.fail", dedup_key="mine") == job


def test_dedup_can_be_skipped():
    first = Job.objects.enqueue("test.echo", subject=("report", 7))

    for options in ({}, {"dedup_key": first.dedup_key}):
        job = Job.objects.enqueue("test.echo", subject=("report", 7), skip_dedup=True, **options)
        assert job != first
        assert job.dedup_key is None


parts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=200)
subjects = st.tuples(parts, parts.map(lambda text: text[:100]), parts)


@given(one=subjects, other=subjects)
def test_no_two_subjects_share_a_default_key(one, other):
    assert (default_dedup_key(*one) == default_dedup_key(*other)) is (one == other)
    assert len(default_dedup_key(*one)) <= 400


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b", "c:d"), ("a", "b:c", "d")),
        (('a"', "b", "c"), ("a", '"b', "c")),
        (("t" * 200, "s" * 100, "i" * 200), ("t" * 200, "s" * 100, "i" * 199 + "j")),
        (("t" * 200, "s" * 100, "i" * 199), ("t" * 200, "s" * 100, "i" * 200)),
        (('"' * 200, '"' * 100, '"' * 200), ('"' * 200, '"' * 99, '"' * 200)),
    ],
)
def test_subjects_that_look_alike_have_different_keys(one, other):
    first = Job.objects.enqueue(one[0], subject=one[1:])
    second = Job.objects.enqueue(other[0], subject=other[1:])

    assert first != second
    assert first.dedup_key != second.dedup_key


@pytest.mark.parametrize("state", [{}, {"scheduled": True}, {"running": True}])
def test_a_collision_returns_the_active_row_untouched(state):
    active = JobFactory(dedup_key="once", payload={"n": 1}, **state)
    before = row(active)

    job = Job.objects.enqueue("test.fail", {"n": 2}, dedup_key="once", priority=-5, queue="mail")

    assert {name: getattr(job, name) for name in before} == before
    assert row(active) == before
    assert Job.objects.count() == 1


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_an_ended_job_holds_no_key(state):
    ended = JobFactory(dedup_key="once", **{state: True})

    assert Job.objects.enqueue("test.echo", dedup_key="once") != ended
    assert Job.objects.active().count() == 1


@pytest.mark.parametrize("ending", [success, failure])
def test_a_settle_frees_the_key(ending):
    first = Job.objects.enqueue("test.echo", dedup_key="once")
    Job.objects.settle([ending(claimed()[0])])

    assert Job.objects.enqueue("test.echo", dedup_key="once") != first


def test_the_caller_s_transaction_stays_usable_after_a_collision():
    JobFactory(dedup_key="once")

    with transaction.atomic():
        Job.objects.enqueue("test.echo", dedup_key="once")
        JobFactory(type="test.after")

    assert Job.objects.filter(type="test.after").exists()


class Flicker:
    """Ends the owner of a key just before enqueue looks for it, and revives it before an insert.

    What a very quick job of another session could do, `times` times.
    """

    def __init__(self, times):
        self.left = times

    def __call__(self, execute, sql, params, many, context):
        if "INSERT INTO" in sql and self.left:
            self.become("pending")
        elif sql.startswith("SELECT"):
            self.left -= 1
            self.become("cancelled")
        return execute(sql, params, many, context)

    def become(self, status):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_jobqueue_job SET status = %s", [status])


@committed
def test_a_collision_that_disappears_is_inserted_again(jobs):
    owner = JobFactory(dedup_key="once", cancelled=True)

    with connection.execute_wrapper(Flicker(times=INSERT_TRIES - 1)):
        job = jobs.enqueue("test.echo", dedup_key="once")

    assert job != owner
    assert row(job)["status"] == JobStatus.PENDING


@committed
def test_a_collision_that_keeps_disappearing_is_a_conflict(jobs):
    owner = JobFactory(dedup_key="once", cancelled=True)

    with (
        connection.execute_wrapper(Flicker(times=INSERT_TRIES)),
        pytest.raises(EnqueueConflict, match="'once' kept appearing and ending during 4 inserts"),
    ):
        jobs.enqueue("test.echo", dedup_key="once")

    assert list(Job.objects.all()) == [owner]


def test_any_other_integrity_error_is_raised(jobs):
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX one_job_a_reason ON django_jobqueue_job (reason)")
    jobs.enqueue("test.echo", reason="once")

    with pytest.raises(IntegrityError), transaction.atomic():
        jobs.enqueue("test.echo", reason="once", dedup_key="free")

    assert Job.objects.count() == 1


# Transactions and queries


@on_postgresql
@committed
def test_an_enqueue_is_one_insert():
    with CaptureQueriesContext(connection) as queries:
        Job.objects.enqueue("test.echo", {"n": 1}, subject=("report", 7), delay=3)

    (query,) = queries
    assert query["sql"].lstrip().startswith("INSERT")


@committed
def test_a_rollback_leaves_no_row():
    with transaction.atomic():
        Job.objects.enqueue("test.echo")
        transaction.set_rollback(True)

    assert not Job.objects.exists()


@committed
def test_a_commit_shows_the_row_to_others(session):
    def seen():
        with session.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM django_jobqueue_job")
            return cursor.fetchone()[0]

    with transaction.atomic():
        Job.objects.enqueue("test.echo")
        assert seen() == 0

    assert seen() == 1


# Tracing


@pytest.fixture
def tracer():
    return TracerProvider().get_tracer("tests")


def test_the_active_span_is_stored(tracer):
    with tracer.start_as_current_span("request") as span:
        job = Job.objects.enqueue("test.echo")

    ids = span.get_span_context()
    traceparent = row(job)["trace_context"]
    assert traceparent.startswith(f"00-{ids.trace_id:032x}-{ids.span_id:016x}-")
    assert len(traceparent) == 55


def test_without_a_span_none_is_stored():
    assert row(Job.objects.enqueue("test.echo"))["trace_context"] is None


def test_all_jobs_of_one_call_carry_the_span(tracer):
    with tracer.start_as_current_span("request"):
        first, second = Job.objects.enqueue_many([JobRequest("test.echo"), JobRequest("test.fail")])

    assert first.trace_context == second.trace_context is not None


def test_async_code_stores_its_span(tracer):
    async def enqueue():
        with tracer.start_as_current_span("request"):
            return await Job.objects.aenqueue("test.echo")

    assert row(async_to_sync(enqueue)())["trace_context"] is not None


class BrokenSpan(NonRecordingSpan):
    def get_span_context(self):
        raise RuntimeError("broken")


def test_a_broken_tracer_costs_no_job(caplog):
    token = context.attach(set_span_in_context(BrokenSpan(INVALID_SPAN_CONTEXT)))
    try:
        job = Job.objects.enqueue("test.echo")
    finally:
        context.detach(token)

    assert row(job)["trace_context"] is None
    assert "enqueueing without it" in caplog.text


# Async


def test_async_code_enqueues_too():
    job = async_to_sync(Job.objects.aenqueue)("test.echo", {"n": 1}, priority=3)

    assert (row(job)["payload"], row(job)["priority"]) == ({"n": 1}, 3)
