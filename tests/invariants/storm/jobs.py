"""Handlers that end in every way a handler ends, and note when each began and how it ended.

Each draws its end anew, so that a job that comes back ends in another way.
"""

import asyncio
import functools
import json
import os
import random
import time
from datetime import timedelta
from pathlib import Path

from django.db import connection, transaction

from django_jobqueue import PermanentError, RateLimitError, job_handler
from django_jobqueue.models import Job

LEASE_SECONDS = 3.0
HASTE = timedelta(seconds=1)
OVERTIME_SECONDS = 1.6
LONG_SECONDS = LEASE_SECONDS * 1.5
REFUSED_RESULT = "the database of the test refuses this"


def note(job, token, attempt, what):
    """Append a line to the workers' record: one write, so that lines never mix."""
    line = {"job": str(job), "token": str(token), "attempt": attempt, "what": what}
    line |= {"pid": os.getpid(), "at": time.time()}
    with Path(os.environ["STORM_NOTES"]).open("ab", buffering=0) as notes:
        notes.write(json.dumps(line).encode() + b"\n")


def noted(function):
    """Note the start of a handler and, once it leaves, its end."""

    @functools.wraps(function)
    def run(job):
        claim = job.pk, job.claim_token, job.attempts
        note(*claim, "start")
        try:
            return function(job)
        finally:
            note(*claim, "end")

    return run


def succeed(job):
    return {"attempt": job.attempts}


def linger(job):
    time.sleep(random.uniform(0, 0.2))
    return "a little later"


def fail(job):
    raise ValueError("as drawn")


def give_up(job):
    raise PermanentError("as drawn")


def be_limited(job):
    raise RateLimitError(retry_after=0.05)


def leave_python(job):
    raise SystemExit(3)


def return_what_no_json_holds(job):
    return {"object": object()}


def return_what_is_refused(job):
    return REFUSED_RESULT


def leave_a_transaction(job):
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1")


def leave_autocommit_off(job):
    transaction.set_autocommit(False)
    Job.objects.filter(pk=job.pk).exists()


def close_the_socket(job):
    connection.ensure_connection()
    connection.connection.close()


def end_the_backend(job):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


ENDS = {
    succeed: 40,
    linger: 24,
    fail: 12,
    be_limited: 8,
    return_what_no_json_holds: 3,
    return_what_is_refused: 3,
    give_up: 2,
    leave_python: 2,
    leave_a_transaction: 2,
    leave_autocommit_off: 1,
    close_the_socket: 2,
    end_the_backend: 1,
}


def drawn():
    return random.choices(list(ENDS), weights=ENDS.values())[0]


@job_handler("storm.any")
@noted
def end_somehow(job):
    return drawn()(job)


@job_handler("storm.hasty", max_runtime=HASTE)
@noted
def hurry(job):
    """Take longer than allowed, most of the time."""
    if random.random() < 0.7:
        time.sleep(OVERTIME_SECONDS)
    return "in time, or too late"


@job_handler("storm.slow")
@noted
def take_long(job):
    """Outlive a lease that nobody renews."""
    time.sleep(random.uniform(1, LONG_SECONDS))
    return "slow"


@job_handler("storm.provider", provider="storm")
@noted
def ask_a_provider(job):
    if random.random() < 0.1:
        raise RateLimitError(retry_after=random.choice([0.1, 1.5]))
    return "answered"


@job_handler("storm.async")
async def end_somehow_on_the_loop(job):
    claim = job.pk, job.claim_token, job.attempts
    note(*claim, "start")
    try:
        await asyncio.sleep(random.uniform(0, 0.1))
        if random.random() < 0.1:
            await Job.objects.filter(pk=job.pk).aexists()
        return random.choice([succeed, succeed, succeed, fail, be_limited, leave_python])(job)
    finally:
        note(*claim, "end")


SHARES = {
    "storm.any": 84,
    "storm.async": 10,
    "storm.hasty": 2,
    "storm.slow": 2,
    "storm.provider": 2,
}
"""Of a hundred jobs, how many are of which type."""
