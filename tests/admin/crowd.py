"""A table with many jobs, made by the database.

Most succeeded, over 30 days; two in a hundred wait or run. One type and one queue have few jobs.
"""

from django.db import connection

TABLE = "django_jobqueue_job"

FILL = f"""
INSERT INTO {TABLE} (
    id, type, queue, status, priority, payload, reason, attempts, max_attempts, rate_limit_hits,
    last_error, ready_at, created_at, started_at, finished_at, scheduled_for, executor, worker,
    subject_type, subject_id, claim_token, lease_seconds, lease_expires_at
)
SELECT
    (lpad(to_hex((extract(epoch FROM created) * 1000)::bigint), 12, '0')
        || '7000' || '8' || lpad(to_hex(i), 15, '0'))::uuid,
    CASE WHEN i %% (%(rows)s / 30) = 0 THEN 'rare' ELSE 'app.type' || (i %% 50) END,
    CASE WHEN i %% (%(rows)s / 20) = 1 THEN 'rare' ELSE 'queue' || (i %% 5) END,
    status, i %% 3,
    jsonb_build_object('document', i, 'path', repeat('x', 60), 'hash', md5(i::text)), '',
    CASE WHEN status = 'pending' THEN 0 ELSE 1 END, 3, 0,
    CASE WHEN status = 'failed' THEN 'ValueError: document ' || i || ' is not readable' ELSE '' END,
    created, created,
    CASE WHEN status <> 'pending' THEN created + interval '2 s' END,
    CASE WHEN status IN ('succeeded', 'failed') THEN created + interval '9 s' END,
    CASE WHEN status = 'pending' AND i %% 4 = 1 THEN now() + interval '1 hour' END,
    CASE WHEN status = 'pending' THEN '' ELSE 'server' END, '',
    CASE WHEN i %% 2 = 0 THEN 'kind' || (i %% 12) END, CASE WHEN i %% 2 = 0 THEN (i / 3)::text END,
    CASE WHEN status = 'running' THEN gen_random_uuid() END,
    CASE WHEN status = 'running' THEN 90 END,
    CASE WHEN status = 'running' THEN created + interval '90 s' END
FROM (
    SELECT i, now() - interval '30 days' * (1 - i::float / %(rows)s) AS created,
        CASE
            WHEN i > 0.98 * %(rows)s THEN CASE WHEN i %% 100 = 0 THEN 'running' ELSE 'pending' END
            WHEN i %% 98 = 0 THEN 'failed'
            ELSE 'succeeded'
        END AS status
    FROM generate_series(1, %(rows)s) AS i
) AS made
"""


def fill(rows):
    """Put so many jobs into the table, on PostgreSQL, and let it know what is in there."""
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"rows": rows})
        cursor.execute(f"VACUUM ANALYZE {TABLE}")


def clear():
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLE} CASCADE")
        cursor.execute(f"VACUUM ANALYZE {TABLE}")
