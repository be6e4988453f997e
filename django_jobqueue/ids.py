"""Ids of jobs.

They are UUIDv7 made in Python: known before the insert, ordered by time, the same on every
database.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models

if TYPE_CHECKING:
    from .models import Job

if sys.version_info >= (3, 14):
    from uuid import uuid7 as make_uuid7
else:
    from uuid_utils.compat import uuid7 as make_uuid7


def uuid7() -> UUID:
    """Return a new UUIDv7; those of one process are strictly increasing."""
    value: UUID = make_uuid7()
    return value


def last_id_until(seconds: float) -> UUID:
    """Return the highest id that can be made until a moment, in seconds since 1970."""
    tail_bits = 80
    return UUID(int=(int(seconds * 1000) << tail_bits) | ((1 << tail_bits) - 1))


def ids_of(jobs: "Job | UUID | str | Iterable[Job | UUID | str]") -> list[UUID]:
    """Return the ids of one job or several, each once, in the order given.

    An id may be text, as addresses and JSON have it. Raises ValueError for any other.
    """
    if isinstance(jobs, UUID | str | models.Model):
        jobs = [jobs]
    return list(dict.fromkeys(map(id_of, jobs)))


def id_of(job: "Job | UUID | str") -> UUID:
    """Return the id of a job, or the id that is given."""
    if isinstance(job, models.Model):
        job = job.pk
    if isinstance(job, UUID):
        return job
    try:
        return UUID(job)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"{job!r} is neither a job nor the id of one.") from None


def batches(ids: Sequence[UUID], size: int) -> Iterator[Sequence[UUID]]:
    """Cut ids into pieces of at most `size`."""
    return (ids[start : start + size] for start in range(0, len(ids), size))
