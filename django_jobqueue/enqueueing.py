"""Enqueue: validate, insert, announce. Everything is checked before any SQL."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django.db import connections, transaction
from django.utils import timezone

from . import metrics, wakeups
from .conf import settings, times_are_aware
from .exceptions import EnqueueConflict, InvalidJob, InvalidPayload, shown
from .ids import uuid7
from .jsonvalues import NotJSON, check_size, json_copy, text_problem
from .states import DEFAULT_QUEUE
from .tracing import current_traceparent
from .wakeups import WakeUp

if TYPE_CHECKING:
    from .managers import JobManager
    from .managers.base import TransitionManager
    from .models import Job

INSERT_TRIES = 4
"""The first insert and three more, each after a collision that vanished."""

LENGTHS = {
    "type": 200,
    "queue": 100,
    "reason": 200,
    "dedup_key": 400,
    "org_id": 100,
    "subject type": 100,
    "subject id": 200,
}

PRIORITIES = range(-(2**15), 2**15)

LONGEST_DELAY = timedelta(days=3650)

SCHEDULABLE_YEARS = range(1970, 9999)

Subject = tuple[str, str | int | UUID]


class EnqueueOptions(TypedDict, total=False):
    """The keyword arguments of `enqueue` and its kin."""

    queue: str
    priority: int
    subject: Subject | None
    dedup_key: str | None
    skip_dedup: bool
    scheduled_for: datetime | None
    delay: timedelta | float | None
    reason: str
    org_id: str | None


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What `enqueue` takes, as a value, for `enqueue_many`."""

    type: str
    payload: Mapping[str, Any] | None = None
    queue: str = field(default=DEFAULT_QUEUE, kw_only=True)
    priority: int = field(default=0, kw_only=True)
    subject: Subject | None = field(default=None, kw_only=True)
    dedup_key: str | None = field(default=None, kw_only=True)
    skip_dedup: bool = field(default=False, kw_only=True)
    scheduled_for: datetime | None = field(default=None, kw_only=True)
    delay: timedelta | float | None = field(default=None, kw_only=True)
    reason: str = field(default="", kw_only=True)
    org_id: str | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class NewJob:
    """A checked request: the row to insert, and the delay that the database's clock counts."""

    job: "Job"
    delay: timedelta | None


def requested(job_type: str, payload: Any, options: EnqueueOptions) -> JobRequest:
    """Return the arguments of `enqueue` as one value; raise TypeError for an unknown option."""
    known = EnqueueOptions.__optional_keys__
    for name in options:
        if name not in known:
            listed = ", ".join(EnqueueOptions.__annotations__)
            raise TypeError(f"enqueue() got an unexpected option {name!r}; it takes {listed}.")
    return JobRequest(job_type, payload, **options)


def enqueue(manager: "JobManager", request: JobRequest) -> "Job":
    """Insert one job, or return the active job that has its dedup key."""
    return enqueue_once(manager, request)[0]


def enqueue_once(manager: "JobManager", request: JobRequest) -> "tuple[Job, bool]":
    """Do what `enqueue` does; return the job and whether it is new."""
    new = checked(manager, request, current_traceparent())
    job = insert(manager, [new])[0]
    is_new = job is new.job
    if is_new:
        announce(manager, [job])
        count(manager, [job])
    return job, is_new


def enqueue_many(manager: "JobManager", requests: Iterable[JobRequest]) -> "list[Job]":
    """Insert the jobs of all requests or of none, and return them in the order asked."""
    traceparent = current_traceparent()
    new_jobs = []
    for index, request in enumerate(requests):
        if not isinstance(request, JobRequest):
            raise InvalidJob(f"Request {index} is {shown(request)}; expected a JobRequest.")
        try:
            new_jobs.append(checked(manager, request, traceparent))
        except InvalidJob as error:
            raise type(error)(f"Request {index}: {error}") from None
    if not new_jobs:
        return []
    with transaction.atomic(using=manager.write_alias):
        jobs = insert(manager, new_jobs)
    inserted = [new.job for new, job in zip(new_jobs, jobs, strict=True) if job is new.job]
    announce(manager, inserted)
    count(manager, inserted)
    return jobs


def announce(manager: "TransitionManager", jobs: "Iterable[Job]") -> None:
    """Wake workers for jobs that came to wait, once they are committed. Never raises."""
    wakeups.announce(manager.write_alias, (wake_up_for(job) for job in jobs))


def count(manager: "JobManager", jobs: "Iterable[Job]") -> None:
    """Count new jobs once they are committed, if anybody measures."""
    connection = connections[manager.write_alias]
    if metrics.is_on() and (connection.in_atomic_block or connection.get_autocommit()):
        counts = Counter((job.type, job.queue) for job in jobs)
        transaction.on_commit(partial(metrics.sent, counts), manager.write_alias, robust=True)


def announce_any(manager: "TransitionManager") -> None:
    """Wake all workers: jobs may be claimed that nobody knows one by one. Never raises."""
    wakeups.announce(manager.write_alias, [WakeUp()])


def wake_up_for(job: "Job") -> WakeUp:
    """Return what a worker has to know of a job that was just inserted."""
    types = frozenset((job.type,))
    if job.scheduled_for is None:
        return WakeUp(job.queue, types)
    due_in = (job.scheduled_for - job.created_at).total_seconds()
    return WakeUp(job.queue, types, ready=False, due_in=max(due_in, 0.0))


def insert(manager: "JobManager", new_jobs: list[NewJob]) -> "list[Job]":
    """Insert the jobs; in the place of one whose dedup key is taken comes the job that has it.

    A job that had the key and is gone when we look gives way: the insert is tried again.
    """
    placed: dict[UUID, Job] = {}
    missing = new_jobs
    for _ in range(INSERT_TRIES):
        delays = {new.job.id: new.delay for new in missing if new.delay is not None}
        inserted = manager.insert([new.job for new in missing], delays)
        placed |= {new.job.id: new.job for new in missing if new.job.id in inserted}
        missing = [new for new in missing if new.job.id not in inserted]
        if not missing:
            break
        keys = {new.job.dedup_key for new in missing}
        active = manager.on_write_alias().active().filter(dedup_key__in=keys)
        owners = {job.dedup_key: job for job in active}
        # A job of this very call is returned as the object that the caller gets elsewhere.
        ours = {job.dedup_key: job for job in placed.values()}
        owners |= {key: job for key, job in ours.items() if key in owners}
        placed |= {
            new.job.id: owners[new.job.dedup_key] for new in missing if new.job.dedup_key in owners
        }
        missing = [new for new in missing if new.job.dedup_key not in owners]
        if not missing:
            break
    if missing:
        raise EnqueueConflict(
            f"A job with the dedup key {missing[0].job.dedup_key!r} kept appearing and ending "
            f"during {INSERT_TRIES} inserts. Enqueue again, or use skip_dedup=True."
        )
    return [placed[new.job.id] for new in new_jobs]


def checked(manager: "JobManager", request: JobRequest, traceparent: str | None) -> NewJob:
    """Return the row of a request; raise InvalidJob or InvalidPayload, naming what is wrong."""
    job_type = text("type", request.type)
    subject_type, subject_id = subject_of(request.subject)
    delay = delay_of(request)
    if not isinstance(request.skip_dedup, bool):
        raise InvalidJob(f"skip_dedup is {shown(request.skip_dedup)}; expected True or False.")
    dedup_key = optional_text("dedup_key", request.dedup_key)
    if request.skip_dedup:
        dedup_key = None
    elif dedup_key is None and subject_type is not None and subject_id is not None:
        dedup_key = default_dedup_key(job_type, subject_type, subject_id)
    job = manager.model(
        id=uuid7(),
        type=job_type,
        queue=text("queue", request.queue),
        priority=priority_of(request.priority),
        payload=payload_of(request.payload),
        subject_type=subject_type,
        subject_id=subject_id,
        reason=text("reason", request.reason, empty=True),
        dedup_key=dedup_key,
        scheduled_for=scheduled_for_of(request),
        trace_context=traceparent,
        org_id=optional_text("org_id", request.org_id),
    )
    return NewJob(job, delay)


def text(name: str, value: object, *, empty: bool = False) -> str:
    """Return a string argument; raise InvalidJob if a column cannot hold it."""
    if not isinstance(value, str):
        raise InvalidJob(f"{name} is {shown(value)}; expected a string.")
    if not value and not empty:
        raise InvalidJob(f"{name} is empty; expected 1 to {LENGTHS[name]} characters.")
    if len(value) > LENGTHS[name]:
        raise InvalidJob(
            f"{name} has {len(value)} characters ({shown(value)}); "
            f"expected at most {LENGTHS[name]}."
        )
    if problem := text_problem(value):
        raise InvalidJob(f"{name} {problem}.")
    return str.__str__(value)


def optional_text(name: str, value: object) -> str | None:
    """Return a string argument, or None for None."""
    return None if value is None else text(name, value)


def subject_of(subject: object) -> tuple[str, str] | tuple[None, None]:
    """Return the type and the id, as text, of what the job is about."""
    if subject is None:
        return None, None
    if not isinstance(subject, tuple | list) or len(subject) != len(("type", "id")):
        raise InvalidJob(f'subject is {shown(subject)}; expected a pair such as ("report", 7).')
    subject_type, subject_id = subject
    if isinstance(subject_id, int | UUID) and not isinstance(subject_id, bool):
        subject_id = id_text(subject_id)
    return text("subject type", subject_type), text("subject id", subject_id)


def id_text(value: int | UUID) -> str:
    """Return the id of a subject as text."""
    try:
        return str(value)
    except ValueError:  # An integer of over 4,300 digits.
        raise InvalidJob(
            f"subject id is {shown(value)}; expected at most {LENGTHS['subject id']} digits."
        ) from None


def default_dedup_key(job_type: str, subject_type: str, subject_id: str) -> str:
    """Return the key of the work "this type about this subject"; injective, so as JSON."""
    key = json.dumps([job_type, subject_type, subject_id], ensure_ascii=False)
    if len(key) <= LENGTHS["dedup_key"]:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{key[: LENGTHS['dedup_key'] - len(digest) - 1]}#{digest}"


def priority_of(value: object) -> int:
    """Return a priority the column can hold."""
    if isinstance(value, int) and not isinstance(value, bool) and value in PRIORITIES:
        return int(value)
    raise InvalidJob(
        f"priority is {shown(value)}; expected a whole number from {PRIORITIES[0]} to "
        f"{PRIORITIES[-1]}."
    )


def payload_of(value: object) -> dict[str, Any]:
    """Return a copy of a payload made of plain JSON types, within MAX_PAYLOAD_BYTES."""
    payload = json_object(value)
    remedy = "Store the data elsewhere and pass its key, or raise MAX_PAYLOAD_BYTES."
    try:
        check_size(payload, "payload", limit=settings.MAX_PAYLOAD_BYTES, remedy=remedy)
    except NotJSON as error:
        raise InvalidPayload(str(error)) from None
    return payload


def json_object(value: object) -> dict[str, Any]:
    """Return a copy of a payload made of plain JSON types, whatever its size."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidPayload(
            f"payload is of type {type(value).__name__}; expected a JSON object (dict)."
        )
    try:
        payload: dict[str, Any] = json_copy(value, "payload")
    except NotJSON as error:
        raise InvalidPayload(str(error)) from None
    return payload


def delay_of(request: JobRequest) -> timedelta | None:
    """Return the delay of a request, or None."""
    delay = request.delay
    if delay is None:
        return None
    if request.scheduled_for is not None:
        raise InvalidJob("delay and scheduled_for are both given; expected one of them.")
    if isinstance(delay, int | float) and not isinstance(delay, bool):
        # The comparison is False for NaN too.
        if 0 <= delay <= LONGEST_DELAY.total_seconds():
            delay = timedelta(seconds=float(delay))
    if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= LONGEST_DELAY:
        raise InvalidJob(
            f"delay is {shown(delay)}; expected seconds or a timedelta from 0 to "
            f"{LONGEST_DELAY.days} days."
        )
    return delay or None


def scheduled_for_of(request: JobRequest) -> datetime | None:
    """Return the time a request is scheduled for, aware exactly where the site's times are."""
    moment = request.scheduled_for
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InvalidJob(f"scheduled_for is {shown(moment)}; expected a datetime.")
    aware = times_are_aware()
    if timezone.is_aware(moment) != aware:
        needed = "an aware datetime (USE_TZ is on)" if aware else "a naive one (USE_TZ is off)"
        raise InvalidJob(f"scheduled_for is {shown(moment)}; expected {needed}.")
    if not is_in_range(moment):
        raise InvalidJob(
            f"scheduled_for is {shown(moment)}; expected a time from {SCHEDULABLE_YEARS[0]} to "
            f"{SCHEDULABLE_YEARS[-1]}."
        )
    return moment


def is_in_range(moment: datetime) -> bool:
    """Whether any database, in any time zone, can give the instant back."""
    try:
        instant = moment.astimezone(UTC) if timezone.is_aware(moment) else moment
    except OverflowError:
        return False
    return instant.year in SCHEDULABLE_YEARS
