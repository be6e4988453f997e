"""The statements of this project's worker in a loop, with nothing around them.

`python -m tests.benchmarks.systems.bare SIZE` settles a batch of SIZE jobs and claims the next in
one statement, and reads the outcomes and the rows. The text and the parameters are those that
`Job.objects.settle_and_claim` sends, taken from one real call; what changes from batch to batch
is recognised by its value.
"""

import os
import signal
import sys
from functools import partial
from uuid import UUID, uuid4

from tests.benchmarks import stamps
from tests.benchmarks.bench import jobqueue_schema
from tests.benchmarks.processes import site_environ
from tests.benchmarks.systems import jobqueue
from tests.benchmarks.systems.contender import PYTHON, Contender

SIZES = {1: 1200, 4: 3000, 16: 5000, 64: 8000}
HINT = UUID(int=1)
fill = jobqueue.fill


def name_of(size):
    return f"its statements bare, batch {size}"


CONTENDERS = [
    Contender(
        name=name_of(size),
        module="bare",
        how="one psycopg connection, prepared, one statement settles a batch and claims the next",
        commands=[[PYTHON, "-m", "tests.benchmarks.systems.bare", str(size)]],
        remaining=jobqueue.remaining,
        expected=expected,
        schema=jobqueue_schema,
        environ=site_environ,
        distributions=("django-jobqueue",),
        in_quick_runs=size in {1, 16},
    )
    for size, expected in SIZES.items()
]


class Statement:
    """A statement that was really sent, to be sent again for other jobs."""

    def __init__(self, sql, parameters, known):
        """Find in `parameters` what changes: `known` has a name for the ids of that call."""
        self.sql = sql
        self.constant = dict(parameters)
        self.changing = {}
        for name, value in self.constant.items():
            ids = ids_in(value)
            if ids and frozenset(ids) in known:
                self.changing[name] = (known[frozenset(ids)], like(value))
            elif ids and HINT in ids:
                self.changing[name] = (partial(hinted, ids), like(value))
        if missing := set(known.values()) - {kind for kind, _ in self.changing.values()}:
            raise SystemExit(f"The statement has no parameter with {', '.join(sorted(missing))}.")

    def parameters(self, hint, **current):
        """Return the parameters for other jobs, whose ids come by the names in `known`."""
        values = dict(self.constant)
        for name, (kind, write) in self.changing.items():
            values[name] = write(kind(hint) if callable(kind) else current[kind])
        return values


def hinted(ids, hint):
    return [hint if one == HINT else one for one in ids]


def ids_in(value):
    """Return the ids that a parameter holds: one, a list, or an array as text; else None."""
    if isinstance(value, str) and value.startswith("{"):
        value = value.strip("{}").split(",")
    values = value if isinstance(value, list) else [value]
    try:
        return [one if isinstance(one, UUID) else UUID(hex=one) for one in values]
    except (AttributeError, TypeError, ValueError):
        return None


def like(value):
    """Return a function that writes ids as this parameter has them."""
    if isinstance(value, str):
        return as_text
    return list if isinstance(value, list) else first


def as_text(ids):
    return "{" + ",".join([one.hex for one in ids]) + "}"


def first(ids):
    return ids[0]


def capture(size):
    """Make one real call; return its statement, where its rows hold what, and the jobs claimed."""
    from django.db import connection

    from django_jobqueue.models import Job
    from django_jobqueue.worker.eligibility import Eligibility

    sent = []

    def note(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        sent.append((sql, params))
        return result

    terms = Eligibility().terms()
    first, permits = new_tokens(size), new_tokens(size)
    options = {
        "queues": terms.queues,
        "max_attempts": terms.max_attempts,
        "workers": dict.fromkeys([*first, *permits], "a-host:12345/0"),
    }
    jobs = Job.objects.claim(first, terms.leases, **options)
    with connection.execute_wrapper(note):
        _, claimed = Job.objects.settle_and_claim(
            [success(job.pk, job.claim_token) for job in jobs],
            permits,
            terms.leases,
            hints={0: HINT},
            **options,
        )
    if len(sent) != 1:
        raise SystemExit(f"A settle with a claim sent {len(sent)} statements; expected one.")
    known = {
        frozenset(job.pk for job in jobs): "ids",
        frozenset(job.claim_token for job in jobs): "tokens",
        frozenset(permits): "permits",
    }
    return Statement(*sent[0], known), claimed


def success(job_id, token):
    from django_jobqueue.states import (
        Attempt,
        Changes,
        Claim,
        Decision,
        JobStatus,
        SettleOutcome,
    )

    changes = Changes(JobStatus.SUCCEEDED)
    attempt = Attempt(1, "a-host:12345/0", None)
    return Decision(Claim(job_id, token), SettleOutcome.SUCCEEDED, changes, attempt)


def new_tokens(size):
    return [uuid4() for _ in range(size)]


def position(rows, values):
    """Return the column in which the rows hold these values."""
    for index in range(len(rows[0])):
        if values == {row[index] for row in rows if row[index] is not None}:
            return index
    raise SystemExit("The rows of the statement do not show the claimed jobs.")


def drive(size):
    """Settle and claim until nothing is left."""
    import psycopg
    from psycopg.types.string import TextLoader

    from django_jobqueue.database.prepared import PreparedCursor
    from django_jobqueue.models import Job
    from django_jobqueue.worker.planning import PLANNER_OPTIONS

    statement, jobs = capture(size)
    ids, tokens = [job.pk for job in jobs], [job.claim_token for job in jobs]
    places = None
    # As a worker's own connection has it.
    planned = {"options": PLANNER_OPTIONS, "prepare_threshold": 0}
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, **planned) as own:
        own.execute("SET timezone = 'UTC'")
        cursor = PreparedCursor(own)
        cursor.adapters.register_loader("jsonb", TextLoader)  # As Django has it.
        while len(ids) == size:
            permits = new_tokens(size)
            parameters = statement.parameters(max(ids), ids=ids, tokens=tokens, permits=permits)
            rows = cursor.execute(statement.sql, parameters).fetchall()
            for _ in ids:
                stamps.count()
            if places is None:
                places = places_in(rows, permits)
            claimed = [row for row in rows if row[places[0]] is not None]
            ids = [row[places[0]] for row in claimed]
            tokens = [row[places[1]] for row in claimed]
    Job.objects.settle(map(success, ids, tokens))


def places_in(rows, permits):
    """Return the columns in which the rows of a full batch hold job ids and claim tokens."""
    from django_jobqueue.models import Job

    ids = set(Job.objects.filter(claim_token__in=permits).values_list("pk", flat=True))
    return position(rows, ids), position(rows, set(permits))


if __name__ == "__main__":
    import django

    django.setup()
    drive(int(sys.argv[1]))
    signal.pause()
