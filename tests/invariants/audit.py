"""The database as a witness: triggers that write down every change of a job, in its transaction."""

import contextlib
import json

from django.db import connection

from django_jobqueue.models import Job, JobAttempt
from tests.invariants.record import Change, Ending, Record, Run, State

# The sequence is drawn while the row is locked, so the numbers of one row are in order.
START = f"""
CREATE TABLE audit_of_jobs (
    number bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    transaction text NOT NULL DEFAULT pg_current_xact_id()::text,
    job uuid NOT NULL,
    old jsonb,
    new jsonb
);
CREATE TABLE audit_of_attempts (
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    transaction text NOT NULL DEFAULT pg_current_xact_id()::text,
    job uuid NOT NULL,
    token uuid,
    outcome text,
    error text
);
CREATE FUNCTION state_of(job {Job._meta.db_table}) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_array(
        job.status, job.claim_token, job.attempts, job.rate_limit_hits,
        extract(epoch FROM job.lease_expires_at), job.worker
    )
$$;
CREATE FUNCTION audit_a_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_of_jobs (job, old, new) VALUES (
        coalesce(NEW.id, OLD.id),
        CASE WHEN TG_OP <> 'INSERT' THEN state_of(OLD) END,
        CASE WHEN TG_OP <> 'DELETE' THEN state_of(NEW) END
    );
    RETURN NULL;
END $$;
CREATE FUNCTION audit_an_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_of_attempts (job, token, outcome, error)
    VALUES (NEW.job_id, NEW.claim_token, NEW.outcome, NEW.exception_class);
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON {Job._meta.db_table}
    FOR EACH ROW EXECUTE FUNCTION audit_a_job();
CREATE TRIGGER audit AFTER INSERT ON {JobAttempt._meta.db_table}
    FOR EACH ROW EXECUTE FUNCTION audit_an_attempt();
"""
END = f"""
DROP TRIGGER audit ON {Job._meta.db_table};
DROP TRIGGER audit ON {JobAttempt._meta.db_table};
DROP FUNCTION audit_a_job(), audit_an_attempt(), state_of({Job._meta.db_table});
DROP TABLE audit_of_jobs, audit_of_attempts;
"""


@contextlib.contextmanager
def audited(*constraints):
    """Write down every change of a job; `constraints` hold for its table meanwhile."""
    table = Job._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(START)
        for number, constraint in enumerate(constraints):
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT audit_{number} {constraint}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for number, _ in enumerate(constraints):
                cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT audit_{number}")
            cursor.execute(END)


def read_record(enqueued, notes):
    """Return the record; `notes` is the file that the handlers wrote."""
    changes = [
        Change(number, at, int(transaction), str(job), state(old), state(new))
        for number, at, transaction, job, old, new in rows(
            "SELECT number, extract(epoch FROM at)::float8, transaction, job, old, new"
            " FROM audit_of_jobs ORDER BY number"
        )
    ]
    endings = [
        Ending(at, int(transaction), str(job), token and str(token), outcome, error)
        for at, transaction, job, token, outcome, error in rows(
            "SELECT extract(epoch FROM at)::float8, transaction, job, token, outcome, error"
            " FROM audit_of_attempts"
        )
    ]
    table = {
        str(job): state(row)
        for job, row in rows(f"SELECT job.id, state_of(job) FROM {Job._meta.db_table} AS job")
    }
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    ids = [str(job) for job in enqueued]
    return Record(ids, changes, endings, [Run(**line) for line in lines], table)


def state(values):
    if isinstance(values, str):
        values = json.loads(values)
    return None if values is None else State(*values)


def rows(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()
