"""Rows by the million, made inside the database: what a queue has lying about after a while.

Their ids are UUIDv7 in the order of their rows, as producers make them, so that the indexes look
as they would on a site.
"""

import contextlib
import json
import random
import string
from dataclasses import dataclass
from datetime import timedelta

import psycopg

DAY = timedelta(days=1)
CHUNK = 500_000
"""Rows a statement: short enough to be interrupted, long enough to be fast."""

INSERT = """
INSERT INTO django_jobqueue_job (
    id, type, queue, status, priority, payload, subject_type, subject_id, reason, dedup_key,
    attempts, rate_limit_hits, last_error, scheduled_for, ready_at, created_at, started_at,
    finished_at, executor, worker, trace_context
)
SELECT
    (
        lpad(to_hex(made.ms), 12, '0') || '7' || substr(made.chance, 1, 3)
        || '8' || substr(made.chance, 4, 15)
    )::uuid,
    (%(types)s::text[])[1 + number %% %(type_count)s],
    (%(queues)s::text[])[1 + number / %(type_count)s %% %(queue_count)s],
    %(status)s, 0, %(payload)s::jsonb,
    CASE WHEN %(realistic)s THEN 'report' END,
    CASE WHEN %(realistic)s THEN number::text END,
    '',
    CASE WHEN %(realistic)s THEN format('["%%s", "report", "%%s"]', %(salt)s::text, number) END,
    CASE WHEN %(finished)s THEN 1 ELSE 0 END, 0, '',
    CASE WHEN %(due_in)s::interval IS NOT NULL THEN made.at + %(due_in)s::interval END,
    made.at + coalesce(%(due_in)s::interval, interval '0'),
    made.at,
    CASE WHEN %(finished)s THEN made.at + interval '2 ms' END,
    CASE WHEN %(finished)s THEN made.at + interval '5 ms' END,
    CASE WHEN %(finished)s THEN 'server' ELSE '' END,
    CASE WHEN %(finished)s THEN 'worker-1:4242:7' ELSE '' END,
    CASE WHEN %(realistic)s
        THEN '00-' || made.chance || '-' || substr(made.chance, 1, 16) || '-01' END
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS number
CROSS JOIN LATERAL (
    SELECT
        statement.at + number * %(apart)s::interval AS at,
        (extract(epoch FROM statement.at + number * %(apart)s::interval) * 1000)::bigint AS ms,
        md5(%(salt)s || number::text) AS chance
    FROM (SELECT %(begin)s::timestamptz AS at) AS statement
) AS made
"""

# Letters by chance, so that nothing can be gained by compressing them.
TEXT = "".join(random.Random(1).choices(string.ascii_letters, k=1_000))
REALISTIC_PAYLOAD = json.dumps({"text": TEXT})
MINIMAL_PAYLOAD = "{}"


@dataclass(frozen=True)
class Rows:
    """What rows to make.

    Their ids and times are spread evenly over `span`, which ended `age` ago. `due_in`: scheduled
    that long after they were made. `realistic`: with a subject, a dedup key, a trace context and
    a payload of 1 kB.
    """

    count: int
    types: tuple[str, ...] = ("bench.noop",)
    queues: tuple[str, ...] = ("default",)
    finished: bool = False
    due_in: timedelta | None = None
    age: timedelta = timedelta(0)
    span: timedelta = timedelta(minutes=1)
    realistic: bool = False


def fill(connection: psycopg.Connection, rows: Rows) -> None:
    """Insert the rows, a chunk a transaction."""
    (begin, salt) = connection.execute(
        "SELECT statement_timestamp() - %s - %s, gen_random_uuid()::text", (rows.age, rows.span)
    ).fetchone()
    parameters = {
        "types": list(rows.types),
        "type_count": len(rows.types),
        "queues": list(rows.queues),
        "queue_count": len(rows.queues),
        "status": "succeeded" if rows.finished else "pending",
        "finished": rows.finished,
        "payload": REALISTIC_PAYLOAD if rows.realistic else MINIMAL_PAYLOAD,
        "realistic": rows.realistic,
        "due_in": rows.due_in,
        "apart": rows.span / max(rows.count, 1),
        "begin": begin,
        "salt": salt,
    }
    with acknowledged_early(connection):
        for first in range(0, rows.count, CHUNK):
            last = min(first + CHUNK, rows.count) - 1
            connection.execute(INSERT, {**parameters, "first": first, "last": last})


def vacuum(connection: psycopg.Connection) -> None:
    """Leave the table as autovacuum does."""
    connection.execute("VACUUM (ANALYZE) django_jobqueue_job")


def settle_down(connection: psycopg.Connection) -> None:
    """Leave table and disk as they are a while later, so that no upkeep comes meanwhile."""
    vacuum(connection)
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
        connection.execute("CHECKPOINT")


def empty(connection: psycopg.Connection) -> None:
    """Remove every job."""
    connection.execute("TRUNCATE django_jobqueue_job CASCADE")


def exists(connection: psycopg.Connection, condition: str) -> bool:
    """Whether there is a row that meets a condition."""
    sql = f"SELECT EXISTS (SELECT FROM django_jobqueue_job WHERE {condition})"
    return connection.execute(sql).fetchone()[0]


@contextlib.contextmanager
def acknowledged_early(connection: psycopg.Connection):
    """Do not wait for the disk at each commit of rows that nobody would miss."""
    connection.execute("SET synchronous_commit = off")
    try:
        yield
    finally:
        connection.execute("RESET synchronous_commit")


def wake_workers(connection: psycopg.Connection) -> None:
    """Tell the workers that there are rows, as an enqueue does."""
    anything = '{"queue":null,"types":null,"ready":true,"in":null}'
    connection.execute("SELECT pg_notify('django_jobqueue', %s)", (anything,))
