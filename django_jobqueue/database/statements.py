"""The SQL of the PostgreSQL transitions, each statement by its name.

Parts in braces are filled in once: table names, and the pick that the ORM compiled. Values are
named psycopg parameters; those ending in `[]` in a cast are arrays with an element a row.
"""

# Under snapshot isolation a collision with a job that is not to be seen would abort the caller's
# transaction: unless asked to insert blindly, keyed rows are left out there.
INSERT = """
INSERT INTO {job} (
    id, type, queue, status, priority, payload, subject_type, subject_id, reason, dedup_key,
    attempts, rate_limit_hits, last_error, scheduled_for, ready_at, created_at,
    executor, worker, trace_context, org_id
)
SELECT
    asked.id, asked.type, asked.queue, 'pending', asked.priority, asked.payload,
    asked.subject_type, asked.subject_id, asked.reason, asked.dedup_key,
    0, 0, '',
    due.scheduled_for, coalesce(due.scheduled_for, moment.now), moment.now,
    '', '', asked.trace_context, asked.org_id
FROM (SELECT statement_timestamp() AS now) AS moment
CROSS JOIN unnest(
    %(id)s::uuid[], %(type)s::text[], %(queue)s::text[], %(priority)s::int2[],
    %(payload)s::jsonb[], %(subject_type)s::text[], %(subject_id)s::text[], %(reason)s::text[],
    %(dedup_key)s::text[], %(scheduled_for)s::timestamptz[], %(delay)s::float8[],
    %(trace_context)s::text[], %(org_id)s::text[]
) AS asked(
    id, type, queue, priority, payload, subject_type, subject_id, reason,
    dedup_key, scheduled_for, delay, trace_context, org_id
)
CROSS JOIN LATERAL (
    SELECT coalesce(
        asked.scheduled_for, moment.now + asked.delay * interval '1 second'
    ) AS scheduled_for
) AS due
WHERE asked.dedup_key IS NULL OR %(blindly)s
    OR current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')
ON CONFLICT (dedup_key) WHERE status IN ('pending', 'running') DO NOTHING
RETURNING id, created_at, ready_at, scheduled_for
"""

# The pick locks at most as many rows as there are tokens; the n-th row gets the n-th token.
CLAIM = """
picked AS MATERIALIZED ({pick}),
placed AS (
    SELECT id, type, row_number() OVER (ORDER BY priority, id) AS place FROM picked
),
claimed AS (
    UPDATE {job} AS job
    SET status = 'running',
        attempts = job.attempts + 1,
        max_attempts = coalesce(terms.max_attempts, job.max_attempts),
        executor = %(executor)s,
        node_id = %(node_id)s,
        worker = permit.worker,
        claim_token = permit.token,
        started_at = statement_timestamp(),
        lease_seconds = terms.lease_seconds,
        lease_expires_at = statement_timestamp() + terms.lease_seconds * interval '1 second'
    FROM placed
    JOIN unnest(%(permits)s::uuid[], %(workers)s::text[])
        WITH ORDINALITY AS permit(token, worker, place) ON permit.place = placed.place
    JOIN unnest(%(types)s::text[], %(lease_seconds)s::float8[], %(max_attempts)s::int2[])
        AS terms(type, lease_seconds, max_attempts) ON terms.type = placed.type
    WHERE job.id = placed.id
    RETURNING placed.place, {columns}
)"""

# Each decision counts only for the row that still runs under its token.
SETTLE = """
decided AS MATERIALIZED (
    SELECT * FROM unnest(
        %(job_id)s::uuid[], %(token)s::uuid[], %(outcome)s::text[], %(status)s::text[],
        %(result)s::jsonb[], %(error)s::text[], %(delay)s::float8[], %(attempts)s::int2[],
        %(hits)s::int2[], %(limited)s::boolean[], %(number)s::int2[],
        %(exception_class)s::text[], %(message)s::text[], %(traceback)s::text[]
    ) AS decision(
        job_id, token, outcome, status, result, error, delay, attempts,
        hits, limited, number, exception_class, message, traceback
    )
),
fenced AS MATERIALIZED (
    SELECT job.id
    FROM {job} AS job JOIN decided ON decided.job_id = job.id
    WHERE job.claim_token = decided.token AND job.status = 'running'
    ORDER BY job.id
    FOR NO KEY UPDATE OF job SKIP LOCKED
),
settled AS (
    UPDATE {job} AS job
    SET status = decided.status,
        result = CASE decided.status WHEN 'succeeded' THEN decided.result ELSE job.result END,
        last_error = coalesce(decided.error, job.last_error),
        attempts = coalesce(decided.attempts, job.attempts),
        rate_limit_hits = coalesce(decided.hits, job.rate_limit_hits),
        rate_limited_at = CASE WHEN decided.limited THEN statement_timestamp()
            ELSE job.rate_limited_at END,
        scheduled_for = statement_timestamp() + decided.delay * interval '1 second',
        ready_at = CASE decided.status WHEN 'pending'
            THEN statement_timestamp() + coalesce(decided.delay, 0) * interval '1 second'
            ELSE job.ready_at END,
        finished_at = CASE decided.status WHEN 'pending' THEN NULL
            ELSE statement_timestamp() END,
        claim_token = NULL,
        lease_expires_at = NULL
    FROM fenced JOIN decided ON decided.job_id = fenced.id
    WHERE job.id = fenced.id AND job.claim_token = decided.token AND job.status = 'running'
    RETURNING decided.token, job.started_at, job.executor, job.worker
),
recorded AS (
    INSERT INTO {attempt} (
        job_id, number, outcome, started_at, finished_at, executor, worker, claim_token,
        exception_class, message, traceback
    )
    SELECT
        decided.job_id, decided.number, decided.outcome, settled.started_at,
        statement_timestamp(), settled.executor, settled.worker, decided.token,
        decided.exception_class, decided.message, decided.traceback
    FROM settled JOIN decided ON decided.token = settled.token
    WHERE decided.outcome <> 'succeeded'
)"""

SETTLED = "SELECT token FROM settled"
CLAIMED = "SELECT * FROM claimed ORDER BY place"
SETTLED_AND_CLAIMED = """
SELECT settled.token, claimed.* FROM settled FULL JOIN claimed ON false ORDER BY claimed.place"""

HELD = """
WITH held AS MATERIALIZED (
    SELECT job.id, job.claim_token
    FROM {job} AS job
    JOIN unnest(%(job_id)s::uuid[], %(token)s::uuid[]) AS claim(job_id, token)
        ON claim.job_id = job.id
    WHERE job.claim_token = claim.token AND job.status = 'running'
    ORDER BY job.id
    FOR NO KEY UPDATE OF job SKIP LOCKED
)"""

RENEW = (
    HELD
    + """
UPDATE {job} AS job
SET lease_expires_at = statement_timestamp() + job.lease_seconds * interval '1 second'
FROM held
WHERE job.id = held.id AND job.claim_token = held.claim_token AND job.status = 'running'
RETURNING held.claim_token
"""
)

RELEASE = (
    HELD
    + """,
released AS (
    UPDATE {job} AS job
    SET status = 'pending',
        attempts = greatest(job.attempts - 1, 0),
        scheduled_for = NULL,
        ready_at = statement_timestamp(),
        claim_token = NULL,
        lease_expires_at = NULL
    FROM held
    WHERE job.id = held.id AND job.claim_token = held.claim_token AND job.status = 'running'
    RETURNING job.id, held.claim_token, job.attempts + 1 AS number, job.started_at,
        job.executor, job.worker
),
recorded AS (
    INSERT INTO {attempt} (
        job_id, number, outcome, started_at, finished_at, executor, worker, claim_token,
        exception_class, message, traceback
    )
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
    WHERE status = 'pending' AND scheduled_for <= statement_timestamp()
    ORDER BY scheduled_for
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {job} AS job
SET scheduled_for = NULL
FROM due
WHERE job.id = due.id AND job.status = 'pending'
"""

# The pick gives id, claim_token, attempts, budget, worker and signal of stuck rows. It never
# waits for a lock, so its order, the longest expired first, can deadlock with nobody.
REAP = """
WITH stuck AS MATERIALIZED ({pick}),
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
    UPDATE {job} AS job
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
    WHERE job.id = judged.id AND job.claim_token = judged.claim_token AND job.status = 'running'
    RETURNING job.id, job.type, job.queue, job.status, job.attempts, judged.budget, job.worker,
        judged.signal, judged.message, job.subject_type, job.subject_id, job.org_id,
        judged.claim_token, job.started_at, job.executor
),
recorded AS (
    INSERT INTO {attempt} (
        job_id, number, outcome, started_at, finished_at, executor, worker, claim_token,
        exception_class, message, traceback
    )
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
    RETURNING job.id, job.type, job.status, job.finished_at - job.started_at AS duration
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
SELECT id FROM erased
"""
