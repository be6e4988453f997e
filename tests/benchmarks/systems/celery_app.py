"""The Celery app; imported by Celery's own worker and by the process that enqueues."""

import os

from celery import Celery

from tests.benchmarks import stamps

app = Celery("benchmark", broker=os.environ["BENCH_REDIS_URL"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"global_keyprefix": os.environ["BENCH_CELERY_PREFIX"]},
)


@app.task(name="noop")
def noop():
    stamps.count()
