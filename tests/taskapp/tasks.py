"""Tasks of the app, as a site writes them."""

import asyncio
import time

from django_jobqueue import RateLimitError
from tests.taskapp.framework import task


@task
def add(one, other=0):
    return one + other


@task(priority=10, queue_name="mail")
def greet(name):
    return f"Hello, {name}."


@task
async def add_later(one, other):
    await asyncio.sleep(0)
    return one + other


@task(takes_context=True)
def about(context, *more):
    result = context.task_result
    return {
        "id": result.id,
        "attempt": context.attempt,
        "status": result.status,
        "args": result.args,
        "workers": result.worker_ids,
        "more": list(more),
    }


@task(takes_context=True)
async def about_later(context):
    return context.attempt


@task(takes_context=True)
def stumble(context, times):
    """Fail as often as told, then succeed."""
    if context.attempt <= times:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task
def fail(text):
    raise LookupError(text)


@task
def give_back(kind):
    return {"set": {1}, "nan": float("nan"), "bytes": b"text", "tuple": (1, 2)}[kind]


@task
def sleep(seconds):
    time.sleep(seconds)


added = add
"""What `add` was called once: its old jobs still find it."""


@task
def throttled():
    raise RateLimitError(retry_after=60)
