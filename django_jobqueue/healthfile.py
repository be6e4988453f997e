"""The file by which a worker shows that it is alive: written again and again, and read by age.

Its age is what counts, so `find PATH -mmin -1` tells the same. Needs no Django.
"""

import contextlib
import errno
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 4096
"""What is longer is no health file."""

SKEW_SECONDS = 10.0
"""So far in the future may a file be dated: clocks are set, and those of file servers differ."""

# A FIFO would be waited for. Not every system has the flags.
READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
DRAFTING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Sign:
    """What a health file says: which process wrote it, and how many seconds ago.

    The age of a file that is dated in the future is negative.
    """

    pid: int | None
    age: float

    def is_fresh(self, max_age: float) -> bool:
        """Whether the file is at most `max_age` seconds old, and not of the future."""
        return -SKEW_SECONDS <= self.age <= max_age


def write(path: str) -> None:
    """Write the file anew, so that a reader sees the old one or the new one. Raises OSError."""
    target = Path(path)
    # A name that nobody can foresee, and never a file or link that is there already.
    draft = target.with_name(f"{target.name}.{secrets.token_hex(8)}.tmp")
    said = json.dumps({"pid": os.getpid(), "time": round(time.time(), 3)}) + "\n"
    with reachable(path):
        descriptor = os.open(draft, DRAFTING, 0o666)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(said)
        draft.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def read(path: str) -> Sign | None:
    """Return what the file says, None when there is none. Never waits.

    Raises OSError for a file out of reach, for one that is too long and for what is no file.
    """
    try:
        with reachable(path):
            descriptor = os.open(path, READING)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "It is no regular file", path)
        if status.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, "It is too long for a health file", path)
        content = file.read(MOST_BYTES)
    return Sign(pid_in(content or b""), time.time() - status.st_mtime)


def pid_in(content: bytes) -> int | None:
    """Return the process id that a file names; None in somebody else's file, which has an age."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return None
    pid = said.get("pid") if isinstance(said, dict) else None
    return pid if isinstance(pid, int) and not isinstance(pid, bool) else None


def remove(path: str, pid: int) -> None:
    """Remove the file if that process wrote it: two workers may share a path by mistake."""
    with contextlib.suppress(OSError):
        sign = read(path)
        if sign is not None and sign.pid == pid:
            Path(path).unlink()


@contextlib.contextmanager
def reachable(path: str) -> Iterator[None]:
    """Turn what Python says of a path that no system knows into an OSError."""
    try:
        yield
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), path) from error


def problem_of(path: str) -> str | None:
    """Say why the file cannot be written, or None when it can."""
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        return f"{folder} is no folder"
    if target.is_dir():
        return f"{target} is a folder"
    if target.exists() and not target.is_file():
        return f"{target} is no regular file"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {folder} cannot be written to"
    return None
