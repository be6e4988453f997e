"""Stamps of handlers: each process appends short lines to a file of its own.

`BENCH_STAMPS` names the folder, and `BENCH_STAMP_EVERY` how many calls one stamp stands for.
The handlers of every system count here, so that counting costs each of them the same.
"""

import contextlib
import itertools
import os
import time
from pathlib import Path

FOLDER = "BENCH_STAMPS"
EVERY = "BENCH_STAMP_EVERY"

_every = int(os.environ.get(EVERY, "1"))
_calls = itertools.count(1)
_file = {}


def count():
    """Count a call; every k-th writes `<seconds since the epoch> <calls so far>`."""
    calls = next(_calls)
    if calls % _every == 0:
        write(f"{time.time():.6f} {calls}")


def write(line):
    """Append a line to this process's file, whole, however many threads write."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    pid = os.getpid()  # A worker may fork after the first call.
    if pid not in _file:
        path = Path(folder) / f"{pid}.stamps"
        _file[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(_file[pid], line.encode() + b"\n")


def lines_of(folder):
    """Return the whole lines that all processes have written so far."""
    lines = []
    for path in sorted(Path(folder).glob("*.stamps")):
        with contextlib.suppress(FileNotFoundError):
            text = path.read_text()
            lines += text[: text.rfind("\n") + 1].splitlines()
    return lines


def times_of(folder):
    """Return the sorted times of the counting stamps of all processes."""
    return sorted(float(line.split()[0]) for line in lines_of(folder))


def rate(times, every, total):
    """Return jobs a second between 10 % and 90 % of `total` jobs.

    `times` are sorted, and each stands for `every` jobs that ended since the one before. So the
    start and the end of the worker are left out.
    """
    first = -(-total // (10 * every)) - 1
    last = (9 * total) // (10 * every) - 1
    first = max(first, 0)
    if last <= first or last >= len(times):
        raise ValueError(
            f"{len(times)} stamps of {every} jobs are too few for the middle of {total} jobs."
        )
    return (last - first) * every / (times[last] - times[first])
