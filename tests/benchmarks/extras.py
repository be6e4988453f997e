"""What some measures add to a worker's process: more job types, and a clock on its claims.

`BENCH_TYPES` says how many further types of no-op jobs there are. `BENCH_CLAIM_TIMES` names a
folder in which every statement that claims leaves a line: when it was answered, how many
milliseconds it took as the exchange saw it, and how many jobs it brought.
"""

import functools
import os
import time
from pathlib import Path

TYPES = "BENCH_TYPES"
CLAIM_TIMES = "BENCH_CLAIM_TIMES"


def type_names(count):
    """Return the names of the further types."""
    return tuple(f"bench.type_{number:02}" for number in range(count))


def watch_claims(manager_class, folder):
    """Time the claims of this process."""
    path = Path(folder) / f"{os.getpid()}.claims"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for name in ("claim", "settle_and_claim"):
        setattr(manager_class, name, timed(getattr(manager_class, name), descriptor))


def timed(method, descriptor):
    """Return the method with a line written for each of its calls."""

    @functools.wraps(method)
    def claim(*arguments, **options):
        begin = time.perf_counter()
        answer = method(*arguments, **options)
        took = (time.perf_counter() - begin) * 1000
        jobs = answer[1] if isinstance(answer, tuple) else answer
        os.write(descriptor, f"{time.time():.3f} {took:.3f} {len(jobs)}\n".encode())
        return answer

    return claim


def claim_times(folder, after=0.0, before=float("inf")):
    """Return the milliseconds of the claims answered in that time that brought any job."""
    texts = [path.read_text() for path in Path(folder).glob("*.claims")]
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    parts = [line.split() for line in lines if line.endswith("\n")]
    return [float(took) for at, took, jobs in parts if jobs != "0" and after <= float(at) <= before]
