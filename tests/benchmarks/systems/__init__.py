"""The systems that throughput compares, a module each.

A module has `CONTENDERS`, and `fill(total)`, which enqueues no-op jobs and runs in a process of
its own, in the environment of the system's worker. It imports the system inside functions only.
"""

import importlib

OURS = ["jobqueue", "bare"]
PEERS = ["celery_redis", "procrastinate_async", "tasks_db", "ox", "pgqueuer_batch"]


def contenders(*, quick, peers):
    """Return the contenders of a run; without `peers` only those of this project."""
    names = OURS + (PEERS if peers else [])
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    every = [contender for module in modules for contender in module.CONTENDERS]
    return [contender for contender in every if contender.in_quick_runs or not quick]
