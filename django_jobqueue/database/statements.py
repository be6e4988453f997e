"""The SQL of the PostgreSQL transitions, each statement by its name.

Parts in braces are filled in once: table names, and the pick that the ORM compiled. Values are
named psycopg parameters; those ending in `[]` in a cast are arrays with an element a row.
"""

INSERT_INTO = """
INSERT INTO {job} (
    id, type, queue, priority, payload, subject_type, subject_id, reason, dedup_key, created_at,
    trace_context, org_id, status, attempts, rate_limit_hits, last_error, scheduled_for, ready_at,
    executor, worker
)
SELECT
    asked.id, asked.type, asked.queue, asked.priority, asked.payload, asked.subject_type,
    asked.subject_id, asked.reason, asked.dedup_key, statement_timestamp(),
    asked.trace_context, asked.org_id, 'pending', 0, 0, '',
    due.scheduled_for, coalesce(due.scheduled_for, statement_timestamp()),
    '', ''
"""

# Under snapshot isolation a collision with a job that is not to be seen would abort the caller's
# transaction: unless asked to insert blindly, keyed rows are left out there.
UNLESS_ACTIVE = """
CROSS JOIN LATERAL (
    SELECT coalesce(
        asked.scheduled_for, statement_timestamp() + asked.delay * interval '1 second'
    ) AS scheduled_for
) AS due
WHERE asked.dedup_key IS NULL OR %(blindly)s
    OR current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')
ON CONFLICT (dedup_key) WHERE status IN ('pending', 'running') AND dedup_key IS NOT NULL
    DO NOTHING
"""

INSERT_ONE = f"""{INSERT_INTO}
FROM (
    SELECT
        %(id)s::uuid AS id, %(type)s::text AS type, %(queue)s::text AS queue,
        (%(priority)s)::int2 AS priority, %(payload)s::jsonb AS payload,
        %(subject_type)s::text AS subject_type, %(subject_id)s::text AS subject_id,
        %(reason)s::text AS reason, %(dedup_key)s::text AS dedup_key,
        %(scheduled_for)s::timestamptz AS scheduled_for, %(delay)s::float8 AS delay,
        %(trace_context)s::text AS trace_context, %(org_id)s::text AS org_id
) AS asked
{UNLESS_ACTIVE}
RETURNING id, scheduled_for, created_at
"""

# The time is the same for all rows, and comes back once.
INSERT_MANY = f"""
WITH inserted AS (
    {INSERT_INTO}
    FROM unnest(
        %(id)s::uuid[], %(type)s::text[], %(queue)s::text[], %(priority)s::int2[],
        %(payload)s::jsonb[], %(subject_type)s::text[], %(subject_id)s::text[],
        %(reason)s::text[], %(dedup_key)s::text[], %(scheduled_for)s::timestamptz[],
        %(delay)s::float8[], %(trace_context)s::text[], %(org_id)s::text[]
    ) AS asked(
        id, type, queue, priority, payload, subject_type, subject_id, reason, dedup_key,
        scheduled_for, delay, trace_context, org_id
    )
    {UNLESS_ACTIVE}
    RETURNING id, scheduled_for
)
SELECT id, scheduled_for, CASE row_number() OVER () WHEN 1 THEN statement_timestamp() END
FROM inserted
"""

# Where only the primary key may serve a condition, it does not imply the condition of any partial
# index: those attract the planner when statistics are stale, and they are full of dead entries.
IS_RUNNING = "CASE job.status WHEN 'running' THEN true ELSE false END"

# Of what was decided, the rows that still run under their token and that nobody has locked.
FENCE = f"""
    CROSS JOIN LATERAL (
        SELECT job.ctid AS spot FROM {{job}} AS job
        WHERE job.id = decided.job_id AND job.claim_token = decided.token AND {IS_RUNNING}
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS job"""

RECORD = """
    INSERT INTO {attempt} (
        job_id, number, outcome, started_at, finished_at, executor, worker, claim_token,
        exception_class, message, traceback
    )"""

# A row found once is found again by its `spot`, its place in the table: cheaper than by its key. A
# version that is not the newest any more is never changed by that: it is looked at again, or left.

# `wanted` are the jobs near by that may be taken, in the order of claims. They are read without a
# lock and then locked one by one until there are enough, so that a claimer hides no row from
# another; the pick checks each row again. The n-th row gets the n-th token.
CLAIM = """
wanted AS MATERIALIZED (
    SELECT near.spot, near.id, near.priority, terms.lease_seconds, terms.max_attempts
    FROM near JOIN unnest(
        %(types)s::text[], %(lease_seconds)s::float8[],
        %(max_attempts)s::int2[]
    ) AS terms(type, lease_seconds, max_attempts) ON terms.type = near.type
    WHERE near.type <> ALL (ARRAY(SELECT name FROM {control} WHERE kind = 'type'))
        AND near.queue <> ALL (ARRAY(SELECT name FROM {control} WHERE kind = 'queue'))
        {of_queues}
    ORDER BY near.priority, near.id
),
picked AS MATERIALIZED (
    SELECT wanted.*
    FROM wanted CROSS JOIN LATERAL ({pick}) AS locked
    LIMIT cardinality(%(permits)s::uuid[])
),
placed AS (
    SELECT picked.*, row_number() OVER (ORDER BY priority, id) AS place FROM picked
),
claimed AS (
    UPDATE {job} AS job
    SET status = 'running',
        attempts = least(job.attempts + 1, 32767),
        max_attempts = coalesce(placed.max_attempts, job.max_attempts),
        executor = %(executor)s,
        node_id = %(node_id)s::uuid,
        worker = permit.worker,
        claim_token = permit.token,
        started_at = statement_timestamp(),
        lease_seconds = placed.lease_seconds,
        lease_expires_at = statement_timestamp() + placed.lease_seconds * interval '1 second'
    FROM placed
    JOIN unnest(%(permits)s::uuid[], %(workers)s::text[])
        WITH ORDINALITY AS permit(token, worker, place) ON permit.place = placed.place
    WHERE job.ctid = placed.spot
    RETURNING placed.place, {columns}
),
sight AS (
    SELECT (SELECT count(*) FROM near) AS seen, (SELECT count(*) FROM wanted) AS wanted
)"""

# Each decision counts only for the row that still runs under its token. Most groups of decisions
# are successes alone, and need no more than this.
SUCCEED = f"""
fenced AS MATERIALIZED (
    SELECT job.spot, decided.*
    FROM unnest(
        %(job_id)s::uuid[], %(token)s::uuid[], %(result)s::jsonb[]
    ) AS decided(job_id, token, result){FENCE}
),
settled AS (
    UPDATE {{job}} AS job
    SET status = 'succeeded',
        result = fenced.result,
        scheduled_for = NULL,
        finished_at = statement_timestamp(),
        claim_token = NULL,
        lease_expires_at = NULL
    FROM fenced
    WHERE job.ctid = fenced.spot AND job.claim_token = fenced.token AND {IS_RUNNING}
    RETURNING fenced.token
)"""

SETTLE = f"""
fenced AS MATERIALIZED (
    SELECT job.spot, decided.*
    FROM unnest(
        %(job_id)s::uuid[], %(token)s::uuid[], %(outcome)s::text[],
        %(status)s::text[], %(result)s::jsonb[], %(error)s::text[],
        %(delay)s::float8[], %(attempts)s::int2[], %(hits)s::int2[],
        %(limited)s::boolean[], %(number)s::int2[],
        %(exception_class)s::text[], %(message)s::text[],
        %(traceback)s::text[]
    ) AS decided(
        job_id, token, outcome, status, result, error, delay, attempts,
        hits, limited, number, exception_class, message, traceback
    ){FENCE}
),
settled AS (
    UPDATE {{job}} AS job
    SET status = fenced.status,
        result = CASE fenced.status WHEN 'succeeded' THEN fenced.result ELSE job.result END,
        last_error = coalesce(fenced.error, job.last_error),
        attempts = coalesce(fenced.attempts, job.attempts),
        rate_limit_hits = coalesce(fenced.hits, job.rate_limit_hits),
        rate_limited_at = CASE WHEN fenced.limited THEN statement_timestamp()
            ELSE job.rate_limited_at END,
        scheduled_for = statement_timestamp() + fenced.delay * interval '1 second',
        ready_at = CASE fenced.status WHEN 'pending'
            THEN statement_timestamp() + coalesce(fenced.delay, 0) * interval '1 second'
            ELSE job.ready_at END,
        finished_at = CASE fenced.status WHEN 'pending' THEN NULL
            ELSE statement_timestamp() END,
        claim_token = NULL,
        lease_expires_at = NULL
    FROM fenced
    WHERE job.ctid = fenced.spot AND job.claim_token = fenced.token AND {IS_RUNNING}
    RETURNING fenced.token, job.started_at, job.executor, job.worker
),
recorded AS ({RECORD}
    SELECT
        fenced.job_id, fenced.number, fenced.outcome, settled.started_at,
        statement_timestamp(), settled.executor, settled.worker, fenced.token,
        fenced.exception_class, fenced.message, fenced.traceback
    FROM settled JOIN fenced ON fenced.token = settled.token
    WHERE fenced.outcome <> 'succeeded'
)"""

SETTLED = "SELECT token FROM settled"
CLAIMED = """
SELECT sight.seen, sight.wanted, NULL AS token, claimed.*
FROM sight LEFT JOIN claimed ON true
ORDER BY claimed.place"""
SETTLED_AND_CLAIMED = """
SELECT sight.seen, sight.wanted, settled.token, claimed.*
FROM sight LEFT JOIN (settled FULL JOIN claimed ON false) ON true
ORDER BY claimed.place"""

# Statements that are prepared name the rows by an array of ids: a join could be planned as a walk
# over the whole primary key while the table is empty.
HELD = f"""
WITH held AS MATERIALIZED (
    SELECT decided.job_id AS id, decided.token AS claim_token
    FROM unnest(%(job_id)s::uuid[], %(token)s::uuid[]) AS decided(job_id, token){FENCE}
)"""

RENEW = (
    HELD
    + f"""
UPDATE {{job}} AS job
SET lease_expires_at = statement_timestamp() + job.lease_seconds * interval '1 second'
WHERE job.id = ANY (ARRAY(SELECT id FROM held))
    AND job.claim_token = ANY (ARRAY(SELECT claim_token FROM held)) AND {IS_RUNNING}
RETURNING job.claim_token
"""
)

RELEASE = (
    HELD
    + f""",
released AS (
    UPDATE {{job}} AS job
    SET status = 'pending',
        attempts = greatest(job.attempts - 1, 0),
        scheduled_for = NULL,
        ready_at = statement_timestamp(),
        claim_token = NULL,
        lease_expires_at = NULL
    FROM held
    WHERE job.id = held.id AND job.claim_token = held.claim_token AND {IS_RUNNING}
    RETURNING job.id, held.claim_token, job.attempts + 1 AS number, job.started_at,
        job.executor, job.worker
),
recorded AS ({RECORD}
    SELECT id, number, 'released', started_at, statement_timestamp(), executor, worker,
        claim_token, '', '', ''
    FROM released
)
SELECT claim_token FROM released
"""
)

PROMOTE = """
WITH due AS MATERIALIZED (
    SELECT id FROM {job}
    WHERE status = 'pending' AND scheduled_for <= statement_timestamp() {of_jobs}
    ORDER BY scheduled_for
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {job} AS job
SET scheduled_for = NULL
WHERE job.id = ANY (ARRAY(SELECT id FROM due))
    AND CASE job.status WHEN 'pending' THEN true ELSE false END
RETURNING job.priority, job.id
"""

# The pick gives id, claim_token, attempts, budget, worker and signal of stuck rows. It never
# waits for a lock, so its order, the longest expired first, can deadlock with nobody.
REAP = f"""
WITH stuck AS MATERIALIZED ({{pick}}),
judged AS (
    SELECT
        stuck.*,
        CASE WHEN attempts < budget THEN 'pending' ELSE 'failed' END AS verdict,
        format(
            %(message)s::text, attempts, budget,
            coalesce(nullif(worker, ''), %(unknown)s::text), signal
        ) AS message
    FROM stuck
),
reaped AS (
    UPDATE {{job}} AS job
    SET status = judged.verdict,
        last_error = CASE judged.verdict WHEN 'failed'
            THEN left(%(name)s::text || ': ' || judged.message, %(error_length)s)
            ELSE job.last_error END,
        scheduled_for = NULL,
        ready_at = CASE judged.verdict WHEN 'pending' THEN statement_timestamp()
            ELSE job.ready_at END,
        finished_at = CASE judged.verdict WHEN 'failed' THEN statement_timestamp() END,
        claim_token = NULL,
        lease_expires_at = NULL
    FROM judged
    WHERE job.id = judged.id AND job.claim_token = judged.claim_token AND {IS_RUNNING}
    RETURNING job.id, job.type, job.queue, job.status, job.attempts, judged.budget, job.worker,
        judged.signal, judged.message, job.subject_type, job.subject_id, job.org_id,
        judged.claim_token, job.started_at, job.executor
),
recorded AS ({RECORD}
    SELECT id, attempts, 'reaped', started_at, statement_timestamp(), executor, worker,
        claim_token, %(class)s, message, ''
    FROM reaped
)
SELECT id, type, queue, status, attempts, budget, worker, signal, message, subject_type,
    subject_id, org_id
FROM reaped
"""

# The foreign key of the attempts is checked at the end, so the order of the deletes is free. The
# rollup's rows are locked in the order of their types: two of these cannot deadlock.
ERASE = """
WITH doomed AS MATERIALIZED ({pick}),
erased AS (
    DELETE FROM {job} AS job
    USING doomed
    WHERE job.id = doomed.id AND job.status = doomed.status
    RETURNING job.id, job.type, job.status, job.finished_at,
        job.finished_at - job.started_at AS duration
),
history AS (
    DELETE FROM {attempt} AS attempt USING erased WHERE attempt.job_id = erased.id
),
counted AS (
    INSERT INTO {rollup} AS rollup (
        type, succeeded_count, failed_count, cancelled_count, duration_sum, duration_samples
    )
    SELECT
        type,
        count(*) FILTER (WHERE status = 'succeeded'),
        count(*) FILTER (WHERE status = 'failed'),
        count(*) FILTER (WHERE status = 'cancelled'),
        coalesce(sum(extract(epoch FROM duration)) FILTER (WHERE sampled), 0),
        count(*) FILTER (WHERE sampled)
    FROM erased
    CROSS JOIN LATERAL (
        SELECT status = 'succeeded' AND duration >= interval '0' AS sampled
    ) AS sample
    WHERE status IN ('succeeded', 'failed', 'cancelled')
    GROUP BY type
    ORDER BY type
    ON CONFLICT (type) DO UPDATE
    SET succeeded_count = rollup.succeeded_count + excluded.succeeded_count,
        failed_count = rollup.failed_count + excluded.failed_count,
        cancelled_count = rollup.cancelled_count + excluded.cancelled_count,
        duration_sum = rollup.duration_sum + excluded.duration_sum,
        duration_samples = rollup.duration_samples + excluded.duration_samples
)
SELECT id, finished_at FROM erased
"""
