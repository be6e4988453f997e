"""Async handlers share one loop and nothing else."""

import asyncio
import threading

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.marks import on_postgresql
from tests.processes import eventually
from tests.testapp.meeting import meet


def all_succeeded(number):
    return Job.objects.filter(status=JobStatus.SUCCEEDED).count() == number


def test_async_jobs_run_side_by_side_on_one_thread(pools, handler):
    together = asyncio.Barrier(3)

    @handler
    async def gather(job):
        await together.wait()
        return threading.current_thread().name

    for _ in range(3):
        Job.objects.enqueue("gather")
    pools(3).start()

    eventually(lambda: all_succeeded(3), "the jobs waited for each other")
    assert len(set(Job.objects.values_list("result", flat=True))) == 1


def test_blocking_calls_of_two_async_jobs_run_side_by_side(pools, handler):
    both = threading.Barrier(2, timeout=30)

    def block(job):
        Group.objects.create(name=str(job.pk))
        both.wait()
        return Group.objects.filter(name=str(job.pk)).count()

    @handler(max_attempts=1)
    async def query(job):
        return await sync_to_async(block)(job)

    for _ in range(2):
        Job.objects.enqueue("query")
    pools(2).start()

    eventually(lambda: not Job.objects.active().exists(), "the jobs waited for each other")
    assert set(Job.objects.values_list("status", "result")) == {(JobStatus.SUCCEEDED, 1)}


def test_sync_calls_of_one_async_job_share_a_thread(run_one, handler):
    @handler
    async def query(job):
        return [await sync_to_async(threading.get_ident)() for _ in range(3)]

    first = run_one("query").result
    assert len(set(first)) == 1


def test_the_orms_async_methods_work(run_one, handler):
    @handler
    async def query(job):
        await Group.objects.acreate(name="one")
        row = await Job.objects.aget(pk=job.pk)
        return [row.attempts, [group.name async for group in Group.objects.all()]]

    assert run_one("query").result == [1, ["one"]]


def test_a_query_on_the_loop_fails_the_attempt_only(run_one, handler):
    @handler(max_attempts=1)
    async def query(job):
        return Group.objects.count()

    assert run_one("query").last_error.startswith("SynchronousOnlyOperation: ")


def test_an_async_job_that_waits_does_not_hold_a_sync_one(pools, meeting):
    Job.objects.enqueue("test.meet-async", meeting.payload, priority=-1)
    pools(2).start()
    guest = meeting.guest()
    job = Job.objects.enqueue("test.echo")

    eventually(lambda: Job.objects.terminal().filter(pk=job.pk).exists(), "the sync job waited")

    guest.let_go("done")
    eventually(lambda: all_succeeded(2), "the async job was not settled")


def test_an_async_job_may_enqueue(run_one, handler):
    @handler
    async def more(job):
        return str((await Job.objects.aenqueue("test.echo", {"from": "async"})).pk)

    job = run_one("more")

    assert Job.objects.get(pk=job.result).status == JobStatus.SUCCEEDED


def test_a_function_that_returns_a_coroutine_is_awaited(run_one, handler):
    async def work(job):
        return "awaited"

    @handler
    def indirect(job):
        return work(job)

    assert run_one("indirect").result == "awaited"


def test_an_async_job_still_running_at_the_stop_is_handed_back(pools, handler):
    running = threading.Event()
    cancelled = threading.Event()

    @handler
    async def wait(job):
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    job = Job.objects.enqueue("wait")
    pool = pools()
    pool.start()
    assert running.wait(30)

    assert pool.stop(grace=0) == 1

    assert cancelled.wait(30)
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


def test_context_variables_of_one_job_do_not_reach_another(drain, handler):
    from contextvars import ContextVar

    seen = ContextVar("seen", default="nothing")

    @handler
    async def remember(job):
        before = seen.get()
        seen.set(str(job.pk))
        return [before, await sync_to_async(seen.get)() == str(job.pk)]

    for _ in range(3):
        Job.objects.enqueue("remember")
    drain(2)

    assert all(
        result == ["nothing", True] for result in Job.objects.values_list("result", flat=True)
    )


@on_postgresql
def test_an_async_jobs_connection_is_its_own(pools, handler):
    both = threading.Barrier(2, timeout=30)

    def backend():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pid = cursor.fetchone()[0]
        both.wait()
        return pid

    @handler(max_attempts=1)
    async def look(job):
        return await sync_to_async(backend)()

    for _ in range(2):
        Job.objects.enqueue("look")
    pools(2).start()

    eventually(lambda: all_succeeded(2), "the jobs waited for each other")
    assert len(set(Job.objects.values_list("result", flat=True))) == 2


def test_handlers_of_both_kinds_meet_one_after_the_other(pools, meeting, handler):
    @handler(name="sync-news")
    def sync_news(job):
        return meet(job, kind="sync")

    @handler(name="async-news")
    async def async_news(job):
        return await asyncio.to_thread(meet, job, kind="async")

    for kind in ("sync", "async", "sync"):
        Job.objects.enqueue(f"{kind}-news", meeting.payload)
    pools(1).start()

    kinds = []
    for _ in range(3):
        guest = meeting.guest()
        kinds.append(guest.news["kind"])
        guest.let_go()
    assert kinds == ["sync", "async", "sync"]
