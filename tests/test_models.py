from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission
from django.db import IntegrityError, connection, models, transaction

from django_jobqueue.models import (
    Job,
    JobAttempt,
    JobStatsRollup,
    QueueControl,
    Schedule,
    WorkerProcess,
)
from tests.claims import LEASE
from tests.factories import (
    JobAttemptFactory,
    JobFactory,
    QueueControlFactory,
    ScheduleFactory,
)

pytestmark = pytest.mark.django_db

TOKEN = UUID(int=7)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)

TEXTS = {
    Job: {
        "type": 200,
        "queue": 100,
        "subject_type": 100,
        "subject_id": 200,
        "reason": 200,
        "dedup_key": 400,
        "worker": 200,
        "last_error": 2_000,
        "org_id": 100,
    },
    JobAttempt: {"worker": 200},
    JobStatsRollup: {"type": 200},
}
JOB_FIELDS = {
    *("id", "type", "queue", "status", "priority", "payload", "result", "subject_type"),
    *("subject_id", "reason", "dedup_key", "attempts", "max_attempts", "rate_limit_hits"),
    *("rate_limited_at", "scheduled_for", "ready_at", "created_at", "started_at", "finished_at"),
    *("executor", "node_id", "worker", "claim_token", "lease_expires_at", "lease_seconds"),
    *("last_error", "trace_context", "org_id"),
}
NULLABLE = {
    *("result", "subject_type", "subject_id", "dedup_key", "max_attempts", "rate_limited_at"),
    *("scheduled_for", "started_at", "finished_at", "node_id", "claim_token"),
    *("lease_expires_at", "lease_seconds", "trace_context", "org_id"),
}


def refused(change):
    """Whether the database refuses a change; the transaction stays usable."""
    try:
        with transaction.atomic():
            change()
    except IntegrityError:
        return True
    return False


def update(**columns):
    return lambda: Job.objects.update(**columns)


def test_a_job_has_the_columns_of_the_contract():
    assert {field.name for field in Job._meta.concrete_fields} == JOB_FIELDS
    assert {field.name for field in Job._meta.concrete_fields if field.null} == NULLABLE


@pytest.mark.parametrize(
    ("model", "name", "length"),
    [(model, name, length) for model, names in TEXTS.items() for name, length in names.items()],
)
def test_a_text_is_as_long_as_the_contract_says(model, name, length):
    assert model._meta.get_field(name).max_length == length


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (JobAttempt, "job number started_at finished_at executor worker claim_token outcome"),
        (JobAttempt, "exception_class message traceback"),
        (JobStatsRollup, "type succeeded_count failed_count cancelled_count"),
        (JobStatsRollup, "duration_sum duration_samples"),
        (WorkerProcess, "id host pid version mode slots busy types queues started_at seen_at"),
        (Schedule, "name type payload cron timezone catch_up limit paused"),
    ],
)
def test_a_model_has_the_columns_of_the_contract(model, columns):
    assert set(columns.split()) <= {field.name for field in model._meta.get_fields()}


def test_a_priority_is_a_small_integer():
    assert isinstance(Job._meta.get_field("priority"), models.SmallIntegerField)


def test_a_job_is_shown_by_its_type_and_id():
    job = JobFactory()

    assert str(job) == f"test.echo {job.pk}"
    assert str(JobAttemptFactory(job=job)) == f"{job.pk} #1: failed"
    assert str(JobStatsRollup(type="test.echo")) == "test.echo"
    assert str(QueueControlFactory(name="mail")) == "queue mail"
    assert str(WorkerProcess(host="host", pid=7)) == "host:7"
    assert str(ScheduleFactory(name="nightly")) == "nightly"


@pytest.mark.parametrize(
    ("state", "columns"),
    [
        ({}, {"status": "waiting"}),
        ({}, {"executor": "robot"}),
        ({}, {"claim_token": TOKEN}),
        ({"succeeded": True}, {"claim_token": TOKEN}),
        ({"running": True}, {"claim_token": None}),
        ({}, {"status": "running"}),
        ({"running": True}, {"status": "pending"}),
        ({"running": True}, {"status": "succeeded"}),
        ({}, {"lease_expires_at": MOMENT}),
        ({"failed": True}, {"lease_expires_at": MOMENT}),
        ({"running": True}, {"status": "pending", "claim_token": None}),
        ({}, {"subject_type": "report"}),
        ({}, {"subject_id": "7"}),
        ({}, {"ready_at": None}),
        ({}, {"created_at": None}),
        ({}, {"payload": None}),
        ({}, {"attempts": -1}),
        ({}, {"rate_limit_hits": -1}),
    ],
    ids=str,
)
def test_the_database_refuses_a_row_against_the_invariants(state, columns):
    JobFactory(**state)

    assert refused(update(**columns))


@pytest.mark.parametrize(
    ("state", "columns"),
    [
        ({}, {"status": "running", "claim_token": TOKEN}),
        ({"running": True}, {"lease_expires_at": None}),
        ({"running": True}, {"started_at": None, "lease_expires_at": None}),
        ({}, {"subject_type": "report", "subject_id": "7"}),
        ({"running": True}, {"executor": "node", "node_id": TOKEN}),
        (
            {"running": True},
            {"status": "failed", "claim_token": None, "lease_expires_at": None},
        ),
    ],
    ids=str,
)
def test_the_database_takes_what_a_transition_or_a_mend_needs(state, columns):
    JobFactory(**state)

    assert not refused(update(**columns))


@pytest.mark.parametrize("other", [{}, {"scheduled": True}, {"running": True}])
@pytest.mark.parametrize("state", [{}, {"scheduled": True}, {"running": True}])
def test_two_active_jobs_cannot_share_a_dedup_key(state, other):
    JobFactory(dedup_key="once", **state)

    assert refused(lambda: JobFactory(dedup_key="once", **other))


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_ended_jobs_may_share_a_dedup_key_with_an_active_one(state):
    JobFactory.create_batch(2, dedup_key="once", **{state: True})

    assert not refused(lambda: JobFactory(dedup_key="once"))
    assert refused(lambda: Job.objects.terminal().update(status="pending"))


def test_jobs_without_a_key_are_not_held_against_each_other():
    JobFactory.create_batch(3)

    assert Job.objects.active().count() == 3


def test_attempts_of_a_job_may_repeat_their_number():
    job = JobFactory(failed=True)
    JobAttemptFactory.create_batch(2, job=job, number=1)

    assert job.attempt_history.count() == 2


def test_a_deleted_job_takes_its_attempts_along():
    attempt = JobAttemptFactory()

    attempt.job.delete()

    assert not JobAttempt.objects.exists()


def test_a_queue_or_type_is_paused_once():
    QueueControlFactory(kind="queue", name="mail")

    assert refused(lambda: QueueControlFactory(kind="queue", name="mail"))
    assert not refused(lambda: QueueControlFactory(kind="type", name="mail"))
    assert refused(lambda: QueueControl.objects.update(kind="node"))


def test_a_type_has_one_rollup_and_a_schedule_one_name():
    JobStatsRollup.objects.create(type="test.echo")
    ScheduleFactory(name="nightly")

    assert refused(lambda: JobStatsRollup.objects.create(type="test.echo"))
    assert refused(lambda: ScheduleFactory(name="nightly"))


def test_the_permissions_are_those_of_the_contract():
    permissions = Permission.objects.filter(content_type__app_label="django_jobqueue")
    names = set(permissions.values_list("codename", flat=True))

    assert {name for name in names if not name.endswith("schedule")} == {
        *("view_job", "delete_job", "view_job_payload", "retry_job", "cancel_job"),
        *("reset_stuck_jobs", "pause_queue", "view_jobattempt", "view_jobstatsrollup"),
        *("view_queuecontrol", "view_workerprocess"),
    }
    assert "change_schedule" in names


def test_the_lease_of_the_factories_is_that_of_the_claims():
    assert JobFactory.build(running=True).lease_seconds == LEASE.total_seconds()


def test_partial_indexes_are_there():
    with connection.cursor() as cursor:
        found = set(connection.introspection.get_constraints(cursor, Job._meta.db_table))

    assert {index.name for index in Job._meta.indexes} <= found
    assert {constraint.name for constraint in Job._meta.constraints} <= found
