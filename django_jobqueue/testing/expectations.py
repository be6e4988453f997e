"""What a test expects of an enqueued job, and in what a job differs from it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypedDict

from ..enqueueing import Subject, subject_of
from ..exceptions import shown
from ..models import Job

TOLERANCE = timedelta(seconds=5)
"""How far a time may be from the one expected, as a test computes it a little later or before."""

LONGEST_PAYLOAD = 200

PLAIN = ("queue", "priority", "dedup_key", "reason", "org_id", "status")


class Expected(TypedDict, total=False):
    """What may be said of a job beside its type.

    `payload`: a part of the payload; objects within may be parts too. `exact_payload`: all of it.
    `scheduled_for`, or `delay` (timedelta or seconds; 0: ready at once): give or take
    `tolerance`, 5 seconds by default; of a job that waits for its time, as it is empty later.
    `queue`, `priority`, `subject`, `dedup_key`, `reason`, `org_id`, `status`: equal.
    """

    payload: Mapping[str, Any]
    exact_payload: Mapping[str, Any]
    queue: str
    priority: int
    subject: Subject | None
    dedup_key: str | None
    reason: str
    org_id: str | None
    status: str
    scheduled_for: datetime
    delay: timedelta | float
    tolerance: timedelta | float


@dataclass(frozen=True)
class Expectation:
    """A type, or None for any, and what else is expected. TypeError for a word it does not know."""

    type: str | None
    rest: Expected = field(default_factory=Expected)

    def __post_init__(self) -> None:
        unknown = self.rest.keys() - Expected.__annotations__.keys()
        if unknown:
            words = ", ".join(Expected.__annotations__)
            raise TypeError(f"Nothing is known of {min(unknown)!r}; expected {words}.")

    def __str__(self) -> str:
        words = [f"{name}={shown(value)}" for name, value in self.rest.items()]
        return " with ".join(part for part in (self.type or "any type", ", ".join(words)) if part)

    def differences(self, job: Job) -> list[str]:
        """Return in what a job is not as expected, a line each; empty for one that matches."""
        return list(self._differences(job))

    def _differences(self, job: Job) -> Iterator[str]:
        if self.type is not None and job.type != self.type:
            yield unequal("type", self.type, job.type)
        for name in PLAIN:
            if name in self.rest and getattr(job, name) != self.rest[name]:  # type: ignore[literal-required]
                yield unequal(name, self.rest[name], getattr(job, name))  # type: ignore[literal-required]
        if "subject" in self.rest:
            expected, got = subject_of(self.rest["subject"]), (job.subject_type, job.subject_id)
            if expected != got:
                yield unequal("subject", expected, got)
        if "payload" in self.rest:
            yield from unlike("payload", self.rest["payload"], job.payload, exact=False)
        if "exact_payload" in self.rest:
            yield from unlike("payload", self.rest["exact_payload"], job.payload, exact=True)
        yield from self._differences_of_times(job)

    def _differences_of_times(self, job: Job) -> Iterator[str]:
        tolerance = duration(self.rest.get("tolerance", TOLERANCE))
        if "scheduled_for" in self.rest:
            moment, got = self.rest["scheduled_for"], job.scheduled_for
            if got is None or abs(got - moment) > tolerance:
                yield unequal("scheduled_for", moment.isoformat(), got and got.isoformat())
        if "delay" in self.rest:
            delay = duration(self.rest["delay"])
            waits = job.scheduled_for - job.created_at if job.scheduled_for else timedelta(0)
            if abs(waits - delay) > tolerance or bool(delay) != (job.scheduled_for is not None):
                yield unequal("delay", delay, waits)


def duration(value: timedelta | float) -> timedelta:
    """Return a timedelta, or seconds as one."""
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def unlike(path: str, expected: Any, got: Any, *, exact: bool) -> Iterator[str]:
    """Yield where a JSON value is not as expected; unless `exact`, objects may have more keys."""
    if isinstance(expected, Mapping) and isinstance(got, dict):
        for key, value in expected.items():
            if key in got:
                yield from unlike(f"{path}.{key}", value, got[key], exact=exact)
            else:
                yield f"{path}.{key}: expected {shown(value)}, is missing"
        if exact:
            for key in got.keys() - expected.keys():
                yield f"{path}.{key}: expected nothing, got {shown(got[key])}"
    elif isinstance(expected, list | tuple) and isinstance(got, list):
        if len(expected) != len(got):
            yield f"{path}: expected {len(expected)} items, got {len(got)}: {shown(got)}"
            return
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from unlike(f"{path}[{index}]", one, other, exact=exact)
    elif expected != got:
        yield unequal(path, expected, got)


def unequal(name: str, expected: Any, got: Any) -> str:
    """Return the line that says so."""
    return f"{name}: expected {shown(expected)}, got {shown(got)}"


def described(job: Job) -> str:
    """Return a job in one line, as a failed assertion lists it."""
    payload = json.dumps(job.payload, ensure_ascii=False)
    if len(payload) > LONGEST_PAYLOAD:
        payload = payload[: LONGEST_PAYLOAD - 1] + "…"
    details = [str(job.status), f"queue {job.queue}"]
    if job.subject_type is not None:
        details.append(f"subject {job.subject_type} {job.subject_id}")
    if job.scheduled_for is not None:
        details.append(f"scheduled for {job.scheduled_for.isoformat()}")
    return f"{job.type} {payload} ({', '.join(details)})"
