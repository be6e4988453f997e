"""Handlers that the tests run, in their own process and in workers."""

import asyncio
import os
import threading
from pathlib import Path

from django_jobqueue import PermanentError, job_handler
from tests.testapp.meeting import meet


@job_handler("test.echo")
def echo(job):
    return job.payload


@job_handler("test.fail", max_attempts=2)
def fail(job):
    raise ValueError("as asked")


@job_handler("test.permanent")
def permanent(job):
    raise PermanentError("never again")


@job_handler("test.async")
async def async_echo(job):
    await asyncio.sleep(0)
    return job.payload


@job_handler("test.note")
def note(job):
    """Append a line to a file, however many processes do so at once."""
    with Path(job.payload["file"]).open("a") as file:
        file.write(f"{job.pk} {os.getpid()}\n")


@job_handler("test.flaky")
def flaky(job):
    if job.attempts == 1:
        raise ValueError("the first attempt fails")


@job_handler("test.meet")
def stay(job):
    return meet(job)


@job_handler("test.meet-async")
async def stay_async(job):
    return await asyncio.to_thread(meet, job)


@job_handler("test.leave-a-thread")
def leave_a_thread(job):
    threading.Thread(target=threading.Event().wait, daemon=False).start()
