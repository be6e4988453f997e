"""What an enqueue costs beside a bare insert of the same row, call by call in turn."""

import time

from tests.benchmarks import programs

PAYLOAD = {"report": 4711, "format": "pdf"}


def compare(calls, at_once, many, synchronous_commit):
    """Time single inserts of both kinds and, `many` times, `enqueue_many` of `at_once` jobs."""
    from django.db import connection

    from django_jobqueue import JobRequest
    from django_jobqueue.models import Job

    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('synchronous_commit', %s, false)", [synchronous_commit])

    moment = Job.objects.now()

    def enqueued():
        Job.objects.enqueue("bench.noop", PAYLOAD)

    def saved():
        row = Job(type="bench.noop", payload=PAYLOAD)
        row.created_at = row.ready_at = moment
        row.save(force_insert=True)

    times = {"enqueued": [], "saved": []}
    for number in range(calls + calls // 10):
        for name, call in (("enqueued", enqueued), ("saved", saved)):
            begin = time.perf_counter()
            call()
            if number >= calls // 10:  # The first ones warm up.
                times[name].append(time.perf_counter() - begin)
    rates = []
    for _ in range(many):
        requests = [JobRequest("bench.noop", PAYLOAD) for _ in range(at_once)]
        begin = time.perf_counter()
        Job.objects.enqueue_many(requests)
        rates.append(at_once / (time.perf_counter() - begin))
    return {**times, "many": rates}


if __name__ == "__main__":
    programs.main(compare)
