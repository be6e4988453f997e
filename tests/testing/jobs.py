"""Handlers of a site, registered for one test module at a time."""

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_jobqueue import JobHandler, PermanentError, RateLimitError
from django_jobqueue.models import Job


class Handler(JobHandler):
    """A handler made of a type, a function and anything else that a handler may have."""

    def __init__(self, job_type, function, **attributes):
        self.type = job_type
        self.function = function
        vars(self).update(attributes)

    def process(self, job):
        return self.function(job)


def chain(job):
    left = job.payload["left"]
    if left:
        Job.objects.enqueue("site.chain", {"left": left - 1})
    return left


def follow_up(job):
    """Enqueue what is to come once the work is committed, as a view would."""
    with transaction.atomic():
        Group.objects.create(name="made by a job")
        transaction.on_commit(lambda: Job.objects.enqueue("site.chain", {"left": 0}))


def duplicate(job):
    """Break the transaction it runs in, if it runs in one."""
    Group.objects.create(name="twice")
    Group.objects.create(name="twice")


def half(job):
    Group.objects.create(name="half")
    raise ValueError("after the first half")


def flaky(job):
    if job.attempts < job.payload.get("succeeds_at", 2):
        raise ValueError(f"attempt {job.attempts}")
    return "done"


def limited(job):
    if job.rate_limit_hits < 1:
        raise RateLimitError(retry_after=90)


def permanent(job):
    raise PermanentError("never")


def unstorable(job):
    return {1, 2}


def leave(job):
    raise SystemExit(3)


def endless(job):
    Job.objects.enqueue("site.endless")


def meddle(job):
    job.payload["list"].append("mine")
    return [type(job.payload["list"]).__name__, connection.in_atomic_block]


async def gentle(job):
    name = await sync_to_async(lambda: Group.objects.get(pk=job.payload["group"]).name)()
    await Group.objects.acreate(name=f"{name} again")
    return name


async def harsh(job):
    raise SystemExit(4)


def handlers():
    functions = [
        chain,
        follow_up,
        duplicate,
        half,
        flaky,
        limited,
        permanent,
        unstorable,
        leave,
        endless,
        meddle,
        gentle,
        harsh,
    ]
    return [Handler(f"site.{function.__name__}", function) for function in functions]
