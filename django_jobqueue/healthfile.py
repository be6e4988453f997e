"""The file by which a worker shows that it is alive: written again and again, and read by age.

Its age is what counts, so `find PATH -mmin -1` tells the same. Needs no Django.
"""

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sign:
    """What a health file says: which process wrote it, and how many seconds ago."""

    pid: int | None
    age: float


def write(path: str) -> None:
    """Write the file anew, so that a reader sees the old one or the new one. Raises OSError."""
    target = Path(path)
    draft = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(json.dumps({"pid": os.getpid(), "time": round(time.time(), 3)}) + "\n")
        draft.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def read(path: str) -> Sign | None:
    """Return what the file says, None when there is none. Raises OSError for one out of reach."""
    file = Path(path)
    try:
        age = time.time() - file.stat().st_mtime
        said = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except ValueError:  # Somebody else's file: its age is told all the same.
        said = None
    pid = said.get("pid") if isinstance(said, dict) else None
    return Sign(pid if isinstance(pid, int) else None, max(age, 0.0))


def remove(path: str) -> None:
    """Remove the file if it is there."""
    with contextlib.suppress(OSError):
        Path(path).unlink()


def problem_of(path: str) -> str | None:
    """Say why the file cannot be written, or None when it can."""
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        return f"{folder} is no folder"
    if target.is_dir():
        return f"{target} is a folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {folder} cannot be written to"
    return None
