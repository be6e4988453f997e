"""A producer that enqueues at a steady rate, whatever becomes of its jobs.

The times of its jobs are planned from the start: one that is late does not delay the next, and
how late they were is part of the answer.
"""

import time
import uuid

from tests.benchmarks import percentiles, programs


def produce(rate, seconds, job_type, behind=0.0, mark=""):
    """Enqueue `rate` jobs a second; their ids are made by a clock that is `behind` seconds late.

    The payload of each says when it was enqueued, or `mark`.
    """
    from django_jobqueue.models import Job

    if behind:
        turn_back_the_clock_of_ids(behind)
    Job.objects.count()  # Connects.
    lateness = []
    begin = time.monotonic()
    for number in range(round(rate * seconds)):
        planned = begin + number / rate
        if (left := planned - time.monotonic()) > 0:
            time.sleep(left)
        lateness.append(time.monotonic() - planned)
        Job.objects.enqueue(job_type, {"at": mark or f"{time.time():.6f}"})
    return {
        "sent": len(lateness),
        "seconds": time.monotonic() - begin,
        "late_p50_ms": percentiles.of(lateness, 50) * 1000,
        "late_p99_ms": percentiles.of(lateness, 99) * 1000,
    }


def turn_back_the_clock_of_ids(seconds):
    """Have this process make its ids as a machine does whose clock is late."""
    from django_jobqueue import enqueueing, ids

    def late_uuid7():
        now = ids.uuid7().int
        moved = ((now >> 80) - round(seconds * 1000)) << 80
        return uuid.UUID(int=moved | (now & ((1 << 80) - 1)))

    enqueueing.uuid7 = late_uuid7


if __name__ == "__main__":
    programs.main(produce)
