"""What happened to every job.

The database wrote the changes and the attempts, each in the transaction that made it; the
handlers wrote the runs.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class State(NamedTuple):
    """A job's row at one moment."""

    status: str
    token: str | None = None
    attempts: int = 0
    hits: int = 0
    lease: float | None = None
    worker: str = ""

    def __str__(self):
        lease = "" if self.lease is None else f" lease {self.lease:.3f}"
        claim = "" if self.token is None else f" token {self.token} by {self.worker}{lease}"
        return f"{self.status} attempts={self.attempts} hits={self.hits}{claim}"


class Change(NamedTuple):
    """One write of a job's row. `old` is None for its insert, `new` for its delete."""

    number: int
    at: float
    transaction: int
    job: str
    old: State | None
    new: State | None

    @property
    def is_claim(self):
        return self.new is not None and self.new.token not in {None, self.old and self.old.token}

    @property
    def is_end(self):
        """Whether it ends a claim."""
        held = self.old.token if self.old else None
        return held is not None and (self.new is None or self.new.token != held)

    @property
    def is_renewal(self):
        return bool(self.old and self.new and self.old.token and self.old.token == self.new.token)

    def __str__(self):
        return f"{self.at:.3f} #{self.number} tx {self.transaction}: {self.old} -> {self.new}"


class Ending(NamedTuple):
    """A row of the attempts' history."""

    at: float
    transaction: int
    job: str
    token: str | None
    outcome: str
    error: str = ""

    def __str__(self):
        words = f"attempt row {self.outcome} {self.error}".rstrip()
        return f"{self.at:.3f} tx {self.transaction}: {words} token {self.token}"


class Run(NamedTuple):
    """A handler that started, or left."""

    at: float
    job: str
    token: str
    attempt: int
    what: str
    pid: int = 0

    def __str__(self):
        return f"{self.at:.3f} pid {self.pid}: {self.what} attempt {self.attempt} {self.token}"


@dataclass
class Record:
    """All that was written, the changes of a row in the order of their numbers."""

    enqueued: list[str]
    changes: list[Change]
    endings: list[Ending] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    table: dict[str, State] = field(default_factory=dict)

    @cached_property
    def by_job(self):
        return grouped(sorted(self.changes), lambda change: change.job)

    @cached_property
    def claims(self):
        """The changes that made claims, by token."""
        made = (change for change in self.changes if change.is_claim)
        return grouped(made, lambda change: change.new.token)

    @cached_property
    def ends(self):
        """The changes that ended claims, by token."""
        ended = (change for change in self.changes if change.is_end)
        return grouped(ended, lambda change: change.old.token)

    @cached_property
    def endings_of(self):
        return grouped(self.endings, lambda ending: ending.token)

    @cached_property
    def starts(self):
        started = (run for run in self.runs if run.what == "start")
        return grouped(started, lambda run: run.token)

    def history(self, job):
        """Everything about one job, in the order of its times."""
        lines = [*self.by_job.get(job, [])]
        lines += [row for row in [*self.endings, *self.runs] if row.job == job]
        shown = [f"    {line}" for line in sorted(lines, key=lambda line: line.at)]
        return "\n".join([*shown, f"    in the table: {self.table.get(job)}"])


def grouped(things, key):
    """Return lists of things by their key, each in the order given."""
    found = defaultdict(list)
    for thing in things:
        found[key(thing)].append(thing)
    return found
