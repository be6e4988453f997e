"""What the statements of a worker read, with a million useless rows in front of the useful ones.

All plans are taken once, on the way from an empty table to a full one: what statistics say and
when a statement was prepared is a matter of that order. The tests then look at them.
"""

from contextlib import closing, contextmanager
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from django.db import connections, transaction

from django_jobqueue import JobRequest
from django_jobqueue.database import ClaimRequest, search
from django_jobqueue.database.prepared import numbered
from django_jobqueue.hints import Hints
from django_jobqueue.models import Job
from django_jobqueue.worker.queue_connection import queue_connection
from tests.claims import LEASE, claim_of, claimed, failure, success, tokens
from tests.factories import JobFactory
from tests.marks import on_postgresql
from tests.plans import EXPLAIN, TABLE, explained, plan_of, sent_by, undone

pytestmark = [on_postgresql, pytest.mark.django_db]

FOREIGN, FOREIGN_TYPES = 1_000_000, 50
URGENT, URGENT_LEVEL = 10, -5
USEFUL = 6_000
HELD = 16
DEAD = 5_000
ABANDONED = 4_000
"""Jobs before the useful ones whose transaction was undone: what is left of them in the indexes."""
RUNS = 20
MOST_BUFFERS = 200
BUFFERS_OF_A_WRITE = 13
"""A changed row has a new place in the table and an entry in the key and in one more index."""
MOST_BUFFERS_OF_A_ROW = 30
"""Found by its key, locked and changed, with an attempt row."""
MOST_BUFFERS_OF_A_TYPE = 20
"""A hop to it, and a visit of its lane in each of two queues."""


TYPES = ["test.echo", "test.note"]
QUEUES = ["default", "mail"]
LEASES = dict.fromkeys(TYPES, LEASE)
READY, LANES, KEY = "jobqueue_job_ready", "jobqueue_job_lanes", f"{TABLE}_pkey"
DUE = "jobqueue_job_scheduled"
AT_ITS_SPOT = "Tid Scan"

# Ids as one producer makes them, a millisecond apart and all of the past.
FILL = f"""
INSERT INTO {TABLE} (
    id, type, queue, status, priority, payload, reason, attempts, rate_limit_hits, last_error,
    ready_at, created_at, executor, worker
)
SELECT
    (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - %(age)s + i), 12, '0')
        || '7000' || '8' || lpad(to_hex(i), 15, '0'))::uuid,
    'foreign.' || (i %% {FOREIGN_TYPES}), 'default', 'pending', %(priority)s, '{{}}', '', 0, 0, '',
    now(), now(), '', ''
FROM generate_series(1, %(rows)s) AS i
"""

# Jobs that ran and ended, whose entries in the indexes nobody has cleaned up.
RUN_AND_END = (
    f"""
INSERT INTO {TABLE} (
    id, type, queue, status, priority, payload, reason, attempts, rate_limit_hits, last_error,
    ready_at, created_at, executor, worker, claim_token, lease_seconds, lease_expires_at
)
SELECT gen_random_uuid(), 'foreign.0', 'default', 'running', 0, '{{}}', '', 1, 0, '',
    now(), now(), '', '', gen_random_uuid(), 90, now() + i * interval '1 second'
FROM generate_series(1, %(rows)s) AS i
""",
    f"""
UPDATE {TABLE} SET status = 'succeeded', claim_token = NULL, lease_expires_at = NULL
WHERE type = 'foreign.0' AND status = 'running'
""",
)


PREPARED = """
SELECT name, generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = %s
"""

STALE = "planned by the empty table's statistics"
FRESH = "planned by fresh statistics"
PREPARED_EMPTY = "prepared while the table was empty"
PREPARED_LONG_AGO = "prepared while the table was empty, run often since"
PREPARED_FULL = "prepared when the table was full"
ON_A_SITE = (STALE, FRESH)
ON_A_WORKER = (PREPARED_EMPTY, PREPARED_LONG_AGO, PREPARED_FULL)
COUNTS = (1, 16)


@contextmanager
def as_default(wrapper):
    """Let the managers of this thread speak through another wrapper."""
    before = connections["default"]
    connections["default"] = wrapper
    try:
        yield
    finally:
        connections["default"] = before


def explained_as_prepared(wrapper, statement):
    """Run one by the plan that its session keeps; return also how often each kind was used."""
    sql, params, _ = statement
    text, names = numbered(sql)
    cursor = psycopg.Cursor(wrapper.connection)
    found = cursor.execute(PREPARED, [text.decode()], prepare=False).fetchone()
    assert found, f"not prepared: {sql}"
    name, generic, custom = found
    values = ", ".join(psycopg.sql.quote(params[key]) for key in names)
    with undone(wrapper):
        cursor.execute(f"{EXPLAIN} EXECUTE {name}({values})".encode(), prepare=False)
        return plan_of(cursor), (generic, custom)


class Backlog:
    """The table on its way from empty to full, and the plans taken on that way."""

    def __init__(self, site, worker):
        self.site = site
        self.worker = worker
        self.held = []
        self.looks = []
        self.plans = {}
        self.uses = {}

    def run(self):
        self.tell(f"VACUUM ANALYZE {TABLE}")
        assert claimed() == []  # Compiles the pick, which is done in a transaction of its own.
        self.work()
        self.fill()
        self.take(STALE, self.site)
        self.take(PREPARED_EMPTY, self.worker)
        self.work()
        self.take(PREPARED_LONG_AGO, self.worker)
        self.tell(f"ANALYZE {TABLE}")  # Lets every session plan anew.
        self.take(FRESH, self.site)
        self.work()
        self.take(PREPARED_FULL, self.worker)
        return self

    def tell(self, sql, params=None):
        with self.site.cursor() as cursor:
            cursor.execute(sql, params)

    def fill(self):
        self.tell(FILL, {"rows": URGENT, "priority": URGENT_LEVEL, "age": 3_600_000})
        self.tell(FILL, {"rows": FOREIGN, "priority": 0, "age": FOREIGN})
        for statement in RUN_AND_END:
            self.tell(statement, {"rows": DEAD})
        (look,) = sent_by(self.site, partial(Job.objects.look, TYPES, hints=Hints()))
        with transaction.atomic():
            enqueue(ABANDONED)
            transaction.set_rollback(True)
        enqueue(USEFUL)
        self.looks = [explained(self.site, look) for _ in range(2)]
        self.held = claimed(HELD, leases=LEASES)
        assert len(self.held) == HELD

    def work(self):
        """Send every statement, as a worker does all the time, and undo what it did.

        A committed claim leaves index entries that no search can mark as dead while any database
        of the server has an older transaction. What was undone is dead at once.
        """
        strangers = [Job(id=uuid4(), claim_token=uuid4(), attempts=1) for _ in range(HELD)]
        with as_default(self.worker):
            acts = list(acts_on(strangers).values())
            acts += [partial(claim_along_the_lanes, count) for count in COUNTS]
            for act in acts * RUNS:
                with undone(self.worker):
                    act()

    def take(self, when, wrapper):
        Job.objects.filter(scheduled_for__isnull=False).delete()
        Job.objects.bulk_create(JobFactory.build_batch(HELD, type="foreign.0", due=True))
        with as_default(wrapper):
            for what, statement in statements_of(wrapper, self.held).items():
                if wrapper is self.worker and statement[2]:
                    plan, self.uses[when, what] = explained_as_prepared(wrapper, statement)
                else:
                    plan = explained(wrapper, statement)
                self.plans[when, what] = plan


def enqueue(count):
    """Enqueue so many jobs that a worker may take, half of them in each of two lanes."""
    kinds = list(zip(TYPES, QUEUES, strict=True))
    Job.objects.enqueue_many(
        JobRequest(job_type, queue=queue) for _ in range(count // 2) for job_type, queue in kinds
    )


def acts_on(held):
    """What a worker does; its hints are its own from one time to the next."""
    everywhere, within = Hints(), Hints()
    acts = {
        "look": lambda: Job.objects.look(TYPES, hints=everywhere),
        "look in queues": lambda: Job.objects.look(TYPES, QUEUES, hints=within),
        "settle and claim 16": lambda: Job.objects.settle_and_claim(
            map(success, held), tokens(16), LEASES, hints=everywhere
        ),
        "settle successes": lambda: Job.objects.settle(map(success, held)),
        "settle failures": lambda: Job.objects.settle(map(failure, held)),
        "renew": lambda: Job.objects.renew(map(claim_of, held)),
        "release": lambda: Job.objects.release(map(claim_of, held)),
        "promote": Job.objects.promote,
        "waiting types": lambda: Job.objects.waiting_types(TYPES),
        "waiting types in queues": lambda: Job.objects.waiting_types(TYPES, queues=QUEUES),
    }
    for count in COUNTS:
        acts[f"claim {count}"] = partial(claimed, count, leases=LEASES, hints=everywhere)
        acts[f"claim {count} of queues"] = partial(
            claimed, count, leases=LEASES, hints=within, queues=QUEUES
        )
        acts[f"claim {count}, no hints"] = partial(claimed, count, leases=LEASES)
    return acts


def claim_along_the_lanes(count):
    """Claim as one does that found nothing near by, also where there is nothing at all."""
    request = ClaimRequest(tokens(count), LEASES)
    return Job.objects._database()._statement([], request, search.LANES, Hints())


def statements_of(wrapper, held):
    """Return the statement that each act sends first.

    Without hints all of the window is foreign: then a claim looks, and goes along the lanes.
    """
    acts = acts_on(held)
    found = {what: sent_by(wrapper, act)[0] for what, act in acts.items()}
    for count in COUNTS:
        near, look, lanes = sent_by(wrapper, acts[f"claim {count}, no hints"])
        assert (near[0], look[0]) == (found[f"claim {count}, no hints"][0], found["look"][0])
        found[f"claim {count} along the lanes"] = lanes
    return found


@pytest.fixture(scope="module")
def backlog(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), closing(queue_connection("default")) as worker:
        site = connections["default"]
        site.ensure_connection()
        worker.ensure_connection()
        made = Backlog(site, worker)
        made.tell(f"ALTER TABLE {TABLE} SET (autovacuum_enabled = off)")
        try:
            yield made.run()
        finally:
            made.tell(f"TRUNCATE {TABLE} CASCADE")
            made.tell(f"ALTER TABLE {TABLE} RESET (autovacuum_enabled)")
            made.tell(f"VACUUM ANALYZE {TABLE}")


def assert_claims_through(index, plan, count):
    assert plan.rows == count
    assert plan.accesses == {index, AT_ITS_SPOT}
    assert plan.buffers_before_it_wrote < MOST_BUFFERS
    assert plan.buffers < MOST_BUFFERS + BUFFERS_OF_A_WRITE * (count - 1)


at_every_stage = pytest.mark.parametrize("when", [*ON_A_SITE, *ON_A_WORKER])


@at_every_stage
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("words", ["", " of queues"])
def test_a_claim_reads_only_what_lies_near(backlog, when, count, words):
    assert_claims_through(READY, backlog.plans[when, f"claim {count}{words}"], count)


@at_every_stage
@pytest.mark.parametrize("count", COUNTS)
def test_a_claim_that_sees_only_foreign_rows_gives_up_soon(backlog, when, count):
    plan = backlog.plans[when, f"claim {count}, no hints"]

    assert plan.rows == 1  # What it saw, and no job.
    assert plan.accesses == {READY, AT_ITS_SPOT}
    assert plan.buffers < MOST_BUFFERS


@at_every_stage
@pytest.mark.parametrize("count", COUNTS)
def test_a_claim_along_the_lanes_reads_no_foreign_row(backlog, when, count):
    assert_claims_through(LANES, backlog.plans[when, f"claim {count} along the lanes"], count)


def test_entries_of_jobs_that_never_were_are_met_once(backlog):
    first, second = backlog.looks

    assert first.rows == second.rows == 2
    assert first.buffers > MOST_BUFFERS > second.buffers


@at_every_stage
@pytest.mark.parametrize("what", ["look", "look in queues"])
def test_a_look_reads_no_foreign_rows_but_the_ends_of_levels(backlog, when, what):
    plan = backlog.plans[when, what]

    assert plan.rows == 2  # The first job, and the end of the more urgent level.
    assert plan.accesses == {LANES, READY}
    assert plan.buffers < MOST_BUFFERS


@at_every_stage
def test_a_settle_beside_a_claim_finds_its_rows_by_key(backlog, when):
    plan = backlog.plans[when, "settle and claim 16"]

    assert plan.rows == 2 * HELD
    assert plan.accesses == {READY, AT_ITS_SPOT, KEY}
    assert plan.buffers < MOST_BUFFERS + HELD * MOST_BUFFERS_OF_A_ROW


@at_every_stage
@pytest.mark.parametrize("what", ["settle successes", "settle failures", "renew", "release"])
def test_what_is_held_is_found_by_key(backlog, when, what):
    """Not through the index of running rows, which is full of entries of ended jobs."""
    plan = backlog.plans[when, what]

    assert plan.rows == HELD
    assert KEY in plan.accesses
    assert plan.accesses <= {KEY, AT_ITS_SPOT}
    assert plan.buffers < HELD * MOST_BUFFERS_OF_A_ROW


@at_every_stage
def test_due_jobs_are_found_by_their_time_and_changed_by_key(backlog, when):
    plan = backlog.plans[when, "promote"]

    assert plan.rows == HELD
    assert plan.accesses <= {DUE, KEY, AT_ITS_SPOT}
    assert plan.buffers < HELD * MOST_BUFFERS_OF_A_ROW


@at_every_stage
@pytest.mark.parametrize("words", ["", " in queues"])
def test_a_million_foreign_rows_cost_a_visit_for_each_of_their_types(backlog, when, words):
    plan = backlog.plans[when, f"waiting types{words}"]

    assert plan.rows == FOREIGN_TYPES
    assert plan.accesses == {LANES}
    assert plan.buffers < FOREIGN_TYPES * MOST_BUFFERS_OF_A_TYPE


@pytest.mark.parametrize("when", ON_A_WORKER)
def test_a_worker_plans_each_statement_once(backlog, when):
    uses = {what: used for (stage, what), used in backlog.uses.items() if stage == when}

    assert len(uses) >= 12
    assert {what for what, (_, custom) in uses.items() if custom} == set()
    assert {what for what, (generic, _) in uses.items() if generic < RUNS} == set()
