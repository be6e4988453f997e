"""What it costs to find the types that wait: it grows with the types, not with the jobs.

The plans are taken once, from tables that the server has no statistics of.
"""

import pytest
from django.db import connection

from django_jobqueue.database.postgresql import MOST_UNKNOWN_HOPS
from django_jobqueue.managers.claims import MOST_WAITING_TYPES
from django_jobqueue.models import Job
from tests.marks import on_postgresql
from tests.plans import TABLE, explained, sent_by

pytestmark = [on_postgresql, pytest.mark.django_db]

ROWS = 200_000
FEW = 3
KNOWN = 50
FEW_TYPES, A_TYPE_EACH = "jobs of three types", "a type for each job"
TABLES = {FEW_TYPES: FEW, A_TYPE_EACH: ROWS}
LANES = "jobqueue_job_lanes"
BUFFERS_OF_A_VISIT = 5
"""Three levels of the index, at times its next page, and the row."""

FILL = f"""
INSERT INTO {TABLE} (
    id, type, queue, status, priority, payload, reason, attempts, rate_limit_hits, last_error,
    ready_at, created_at, executor, worker
)
SELECT
    gen_random_uuid(), 'app.kind' || i %% %(types)s, 'default', 'pending', 0,
    jsonb_build_object('args', jsonb_build_array(i), 'backend', 'default'), '', 0, 0, '',
    now(), now(), '', ''
FROM generate_series(1, %(rows)s) AS i
"""


def first_names(kinds):
    """Return the first types in the order of the index, all of them where there are few."""
    return sorted(f"app.kind{number}" for number in range(kinds))[:KNOWN]


def plan_of_look(known=(), queues=None):
    (statement,) = sent_by(connection, lambda: Job.objects.waiting_types(known, queues=queues))
    return explained(connection, statement)


def plans_of(kinds):
    known = first_names(kinds)
    return {
        "all": plan_of_look(),
        "all unknown": plan_of_look(known),
        "in a queue": plan_of_look(queues=["default"]),
        "in two queues": plan_of_look(queues=["absent", "default"]),
        "unknown in a queue": plan_of_look(known, ["default"]),
        "in another queue": plan_of_look(queues=["absent"]),
    }


@pytest.fixture(scope="module")
def plans(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} SET (autovacuum_enabled = off)")
        try:
            found = {}
            for table, kinds in TABLES.items():
                cursor.execute(f"TRUNCATE {TABLE} CASCADE")
                cursor.execute(FILL, {"rows": ROWS, "types": kinds})
                found |= {(table, what): plan for what, plan in plans_of(kinds).items()}
            yield found
        finally:
            cursor.execute(f"TRUNCATE {TABLE} CASCADE")
            cursor.execute(f"ALTER TABLE {TABLE} RESET (autovacuum_enabled)")
            cursor.execute(f"VACUUM ANALYZE {TABLE}")


@pytest.mark.parametrize(
    ("table", "what", "rows", "hops", "visits_of_lanes"),
    [
        (FEW_TYPES, "all", FEW, FEW + 1, FEW),
        (FEW_TYPES, "all unknown", 0, FEW + 1, 0),
        (FEW_TYPES, "in a queue", FEW, FEW + 1, FEW),
        (FEW_TYPES, "in two queues", FEW, FEW + 1, 2 * FEW),
        (FEW_TYPES, "unknown in a queue", 0, FEW + 1, 0),
        (FEW_TYPES, "in another queue", 0, FEW + 1, FEW),
        *(
            (A_TYPE_EACH, what, MOST_WAITING_TYPES, hops, visits)
            for what, hops, visits in [
                ("all", MOST_WAITING_TYPES, MOST_WAITING_TYPES),
                ("all unknown", KNOWN + MOST_WAITING_TYPES, MOST_WAITING_TYPES),
                ("in a queue", MOST_WAITING_TYPES, MOST_WAITING_TYPES),
                ("in two queues", MOST_WAITING_TYPES, 2 * MOST_WAITING_TYPES),
                ("unknown in a queue", KNOWN + MOST_WAITING_TYPES, MOST_WAITING_TYPES),
            ]
        ),
        (A_TYPE_EACH, "in another queue", 0, MOST_UNKNOWN_HOPS, MOST_UNKNOWN_HOPS),
    ],
)
def test_each_type_costs_a_hop_and_each_found_a_visit(
    plans, table, what, rows, hops, visits_of_lanes
):
    plan = plans[table, what]

    assert plan.rows == rows
    assert plan.accesses == {LANES}
    assert plan.buffers <= (hops + visits_of_lanes) * BUFFERS_OF_A_VISIT
