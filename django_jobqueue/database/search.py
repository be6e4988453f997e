"""The SQL that finds jobs to take.

A plan may be made while the table is empty, and serve when it holds millions of rows. So every
part is written for one index and cannot be served by another: a condition that must not match a
partial index says the same in words that do not imply the index's own. READY is the condition of
jobqueue_job_ready, WAITS that of jobqueue_job_lanes; they mean the same rows.
"""

READY = "job.status = 'pending' AND job.scheduled_for IS NULL"
NOW = "extract(epoch FROM statement_timestamp())::float8"
WAITS = "CASE job.status WHEN 'pending' THEN job.scheduled_for IS NULL END"

# The window: the first ready jobs, of any kind, from where the claimer's hints tell it to begin.
NEAR = f"""
span AS MATERIALIZED (
    SELECT * FROM unnest(
        %(from_priority)s::int2[], %(from_id)s::uuid[],
        %(until_priority)s::int4[]
    ) AS span(priority, id, until)
),
near AS MATERIALIZED (
    SELECT found.*
    FROM span CROSS JOIN LATERAL (
        SELECT job.ctid AS spot, job.id, job.priority, job.type, job.queue
        FROM {{job}} AS job
        WHERE {READY}
            AND (job.priority, job.id) >= (span.priority, span.id)
            AND job.priority < span.until
        ORDER BY job.priority, job.id
        LIMIT {{reach}}
    ) AS found
    LIMIT {{reach}}
)"""

# Jobs that somebody named, wherever they lie.
CHOSEN = f"""
near AS MATERIALIZED (
    SELECT job.ctid AS spot, job.id, job.priority, job.type, job.queue
    FROM {{job}} AS job
    WHERE job.id = ANY (%(chosen)s::uuid[]) AND {WAITS}
)"""

# A lane is a type and a queue of ready jobs. Those asked for are visited one by one, so jobs of
# other types and queues cost nothing, wherever they lie.
ASKED = """
asked AS MATERIALIZED (
    SELECT asked.type FROM unnest(%(types)s::text[]) AS asked(type)
    WHERE asked.type <> ALL (ARRAY(SELECT name FROM {control} WHERE kind = 'type'))
)"""

LANES_OF_ALL_QUEUES = f"""{ASKED},
lane(type, queue) AS (
    SELECT asked.type, first.queue
    FROM asked CROSS JOIN LATERAL (
        SELECT job.queue FROM {{job}} AS job
        WHERE {WAITS} AND job.type = asked.type
        ORDER BY job.queue
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT lane.type, next.queue
    FROM lane CROSS JOIN LATERAL (
        SELECT job.queue FROM {{job}} AS job
        WHERE {WAITS} AND job.type = lane.type AND job.queue > lane.queue
        ORDER BY job.queue
        LIMIT 1
    ) AS next
)"""

LANES_OF_QUEUES = f"""{ASKED},
lane AS (
    SELECT asked.type, wanted.queue
    FROM asked CROSS JOIN unnest(%(queues)s::text[]) AS wanted(queue)
)"""

OPEN_LANE = """
open_lane AS MATERIALIZED (
    SELECT lane.type, lane.queue FROM lane
    WHERE lane.queue <> ALL (ARRAY(SELECT name FROM {control} WHERE kind = 'queue'))
)"""

OF_QUEUES = "AND queue = ANY (%(queues)s::text[])"

LANES = f"""
{{lanes}}, {OPEN_LANE},
near AS MATERIALIZED (
    SELECT found.*
    FROM open_lane CROSS JOIN LATERAL (
        SELECT job.ctid AS spot, job.id, job.priority, job.type, job.queue
        FROM {{job}} AS job
        WHERE {WAITS} AND job.type = open_lane.type AND job.queue = open_lane.queue
        ORDER BY job.priority, job.id
        LIMIT {{reach}}
    ) AS found
    ORDER BY found.priority, found.id
    LIMIT {{reach}}
)"""

# What a look reports: the first job of all lanes at each level that was asked about, and at the
# most urgent one; and, at each level more urgent than all of these, the last ready job, which is
# of no use to this claimer. Levels are written as ranges: an equality would let a plan walk the
# primary key in order.
LOOK = f"""
WITH RECURSIVE {{lanes}}, {OPEN_LANE},
first AS MATERIALIZED (
    SELECT first.priority, first.id
    FROM open_lane CROSS JOIN LATERAL (
        SELECT job.priority, job.id FROM {{job}} AS job
        WHERE {WAITS} AND job.type = open_lane.type AND job.queue = open_lane.queue
        ORDER BY job.priority, job.id
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT first.priority, first.id
    FROM open_lane
    CROSS JOIN unnest(%(levels)s::int2[]) AS asked(priority)
    CROSS JOIN LATERAL (
        SELECT job.priority, job.id FROM {{job}} AS job
        WHERE {WAITS} AND job.type = open_lane.type AND job.queue = open_lane.queue
            AND job.priority >= asked.priority AND job.priority <= asked.priority
        ORDER BY job.priority, job.id
        LIMIT 1
    ) AS first
),
best AS MATERIALIZED (
    SELECT DISTINCT ON (priority) priority, id FROM first ORDER BY priority, id
),
limits AS MATERIALIZED (
    SELECT coalesce(
        (SELECT priority FROM best ORDER BY priority LIMIT 1), %(above)s::int4
    ) AS priority
),
level(priority, depth) AS (
    SELECT first.priority, 1
    FROM (
        SELECT job.priority FROM {{job}} AS job WHERE {READY} ORDER BY job.priority LIMIT 1
    ) AS first
    UNION ALL
    SELECT next.priority, level.depth + 1
    FROM level CROSS JOIN LATERAL (
        SELECT job.priority FROM {{job}} AS job
        WHERE {READY} AND job.priority > level.priority
        ORDER BY job.priority
        LIMIT 1
    ) AS next
    WHERE level.depth < %(most_levels)s::int4
)
SELECT level.priority, last.id, false AS takeable, {NOW}
FROM limits
JOIN level ON level.priority < limits.priority
CROSS JOIN LATERAL (
    SELECT job.id FROM {{job}} AS job
    WHERE {READY} AND job.priority >= level.priority AND job.priority <= level.priority
    ORDER BY job.priority DESC, job.id DESC
    LIMIT 1
) AS last
UNION ALL
SELECT best.priority, best.id, true, {NOW} FROM best
"""

# Which types wait: from each type the next one is a search of the index away, however many jobs
# are between. The hops end where the answer is full, as its LIMIT asks for no more of them.
WAITING_TYPES = f"""
WITH RECURSIVE waiting(type, hops) AS (
    SELECT first.type, 1
    FROM (
        SELECT job.type FROM {{job}} AS job WHERE {WAITS} ORDER BY job.type LIMIT 1
    ) AS first
    UNION ALL
    SELECT next.type, waiting.hops + 1
    FROM waiting CROSS JOIN LATERAL (
        SELECT job.type FROM {{job}} AS job
        WHERE {WAITS} AND job.type > waiting.type
        ORDER BY job.type
        LIMIT 1
    ) AS next
    WHERE waiting.hops < %(most_hops)s::int4
)
SELECT waiting.type, one.payload::text
FROM waiting CROSS JOIN LATERAL ({{one}}) AS one
WHERE waiting.type <> ALL (%(known)s::text[])
LIMIT %(limit)s::int4
"""

ONE_OF_ALL_QUEUES = f"""
    SELECT job.payload FROM {{job}} AS job
    WHERE {WAITS} AND job.type = waiting.type
    ORDER BY job.queue, job.priority, job.id
    LIMIT 1"""

ONE_OF_QUEUES = f"""
    SELECT first.payload
    FROM unnest(%(queues)s::text[]) AS wanted(queue)
    CROSS JOIN LATERAL (
        SELECT job.payload FROM {{job}} AS job
        WHERE {WAITS} AND job.type = waiting.type AND job.queue = wanted.queue
        ORDER BY job.priority, job.id
        LIMIT 1
    ) AS first
    LIMIT 1"""
