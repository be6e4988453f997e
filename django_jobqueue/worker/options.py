"""What a worker process is asked to do, and how it ends. Importable before Django is set up."""

from dataclasses import dataclass
from enum import IntEnum

from ..states import WorkerMode


class ExitCode(IntEnum):
    """How a worker process ends. `RECYCLE` is between a child and its supervisor."""

    CLEAN = 0
    FAILED = 1
    RECYCLE = 75  # EX_TEMPFAIL of sysexits.h


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of `run_jobworker`; None takes the setting, or everything."""

    concurrency: int | None = None
    types: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    mode: WorkerMode | None = None
    database: str | None = None
    drain: bool = False
    max_jobs: int | None = None
    max_memory: int | None = None
    health_file: str | None = None
