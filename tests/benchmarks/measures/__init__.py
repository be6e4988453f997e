"""The measures, in the order of the report.

Each is a module here with a `TITLE` and `run(bench) -> Table`.
"""

import importlib

NAMES = [
    "throughput",
    "enqueue",
    "latency",
    "backlog",
    "snapshot",
    "late_rows",
    "idle",
    "memory",
    "wal",
    "operating",
]


def chosen(only=None):
    """Return the named measures as pairs of name and module, in the order of the report."""
    unknown = set(only or ()) - set(NAMES)
    if unknown:
        raise ValueError(
            f"--only names {', '.join(sorted(unknown))}; expected some of {', '.join(NAMES)}."
        )
    names = [name for name in NAMES if not only or name in only]
    return [(name, importlib.import_module(f"{__name__}.{name}")) for name in names]
