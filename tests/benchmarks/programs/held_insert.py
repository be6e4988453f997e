"""A producer whose transaction stays open for a while after its jobs were made."""

import time

from tests.benchmarks import programs


def insert(count, seconds, job_type, mark):
    """Enqueue jobs in one transaction that commits `seconds` later; say when it had."""
    from django.db import transaction

    from django_jobqueue import JobRequest
    from django_jobqueue.models import Job

    with transaction.atomic():
        Job.objects.enqueue_many(JobRequest(job_type, {"at": mark}) for _ in range(count))
        time.sleep(seconds)
        committing_at = time.time()
    return {"count": count, "committed_at": committing_at}


if __name__ == "__main__":
    programs.main(insert)
