"""Claims made one after the other through the manager, each timed; in between they are settled.

The process has the queue's own connection, as the worker's exchange has.
"""

import time
from datetime import timedelta
from uuid import uuid4

from tests.benchmarks import programs

LEASE = timedelta(seconds=90)


def claim(types, queues, size, rounds, seconds):
    """Claim `size` jobs in each of the rounds, in three ways; say how long each took, in ms.

    `apart`: claims and settles one after the other, only the claims timed. `fused`: both in one
    statement, as a busy worker does. `forgetful`: as `apart`, by a claimer that remembers nothing
    of its last search. Each way ends after `seconds`, whatever is left of its rounds.
    """
    from django_jobqueue.hints import Hints
    from django_jobqueue.models import Job
    from django_jobqueue.states import Attempt, Changes, Decision, JobStatus, SettleOutcome
    from django_jobqueue.worker.queue_connection import use_queue_connection

    use_queue_connection("default")
    leases = dict.fromkeys(types, LEASE)
    hints = Hints()

    def request(hints):
        if hints is not None and hints.look_is_due:  # Beside its claims, as a worker does it.
            Job.objects.look(types, queues, hints=hints)
        tokens = [uuid4() for _ in range(size)]
        workers = {token: f"bench:1:{place}" for place, token in enumerate(tokens)}
        attempts = dict.fromkeys(types, 3)
        options = {"workers": workers, "queues": queues, "max_attempts": attempts, "hints": hints}
        return (tokens, leases), options

    def succeeded(job):
        attempt = Attempt(job.attempts, job.worker, job.started_at)
        changes = Changes(JobStatus.SUCCEEDED)
        return Decision(job.claim, SettleOutcome.SUCCEEDED, changes, attempt)

    times = {"apart": [], "fused": [], "forgetful": []}
    claimed = 0
    for name, memory in (("apart", hints), ("forgetful", None)):
        for _ in rounds_within(rounds, seconds):
            arguments, options = request(memory)
            begin = time.perf_counter()
            jobs = Job.objects.claim(*arguments, **options)
            times[name].append((time.perf_counter() - begin) * 1000)
            claimed += len(jobs)
            Job.objects.settle(map(succeeded, jobs))
    decisions = []
    for _ in rounds_within(rounds, seconds):
        arguments, options = request(hints)
        begin = time.perf_counter()
        _, jobs = Job.objects.settle_and_claim(decisions, *arguments, **options)
        times["fused"].append((time.perf_counter() - begin) * 1000)
        claimed += len(jobs)
        decisions = [succeeded(job) for job in jobs]
    Job.objects.settle(decisions)
    return {**times, "claimed": claimed}


def rounds_within(rounds, seconds):
    """Yield as many times as asked, but for no longer than `seconds`."""
    end = time.monotonic() + seconds
    for number in range(rounds):
        if time.monotonic() > end:
            return
        yield number


if __name__ == "__main__":
    programs.main(claim)
