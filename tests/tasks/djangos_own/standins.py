"""The backends in the place of Django's own two, which live in memory and need no worker."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.db import connections

from django_jobqueue.backends import JobQueueBackend
from django_jobqueue.testing import run_job


class Waiting(JobQueueBackend):
    """For the dummy backend: no worker runs, and a test may ask what was enqueued."""

    @property
    def results(self):
        return outside_loop(lambda: [self.read(str(pk)) for pk in self._ids()])

    def clear(self):
        self.jobs().all().delete()

    def get_result(self, result_id):
        return outside_loop(self.read, result_id)

    def read(self, result_id):
        return super().get_result(result_id)

    def _ids(self):
        return self.jobs().order_by("pk").values_list("pk", flat=True)


class AtOnce(JobQueueBackend):
    """For the immediate backend: a worker so quick that the job has ended when enqueue returns."""

    def enqueue(self, task, args, kwargs):
        result = super().enqueue(task, args, kwargs)
        run_job(UUID(result.id), raise_errors=False)
        result.refresh()
        return result


def outside_loop(function, *args):
    """Call what asks the database; where an event loop runs, which Django forbids, in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function(*args)
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(function, *args).result()
        finally:
            pool.submit(connections.close_all).result()
