"""The search over jobs: by id, by the beginning of an id, and by subject. Nothing else is asked."""

import re
from collections.abc import Iterator
from uuid import UUID

from django.db.models import Q

from ..database.subjects import subject_types
from ..managers import JobQuerySet

MOST_SUBJECT_TYPES = 200
"""A subject's id alone is looked up with so many types of subjects."""

MOST_SEPARATORS = 8
"""A subject's type and id may both contain colons; so many places to cut are tried."""

DIGITS_OF_ID = 32
PART_OF_ID = re.compile(r"(?P<head>[0-9a-f]{8,32})(?:…(?P<tail>[0-9a-f]{0,12}))?", re.IGNORECASE)
"""The beginning of an id or all of it; after an ellipsis, as the list writes it, also its end."""


def found_by(jobs: JobQuerySet, words: str) -> JobQuerySet:
    """Return the jobs that the words name.

    They may be an id, the first eight digits of one or more, an id as the list shortens it,
    `type:id` of a subject, or the id of a subject alone. Words that can name no job find none.
    """
    term = words.strip()
    named = Q(pk__in=[])
    for condition in conditions(jobs, term):
        named |= condition
    return jobs.filter(named)


def conditions(jobs: JobQuerySet, term: str) -> Iterator[Q]:
    """Yield what the term may mean; each is served by an index."""
    if part := PART_OF_ID.fullmatch(term.replace("-", "")):
        first, last = (UUID(part["head"].ljust(DIGITS_OF_ID, fill)) for fill in "0f")
        near = Q(pk=first) if first == last else Q(pk__range=(first, last))
        yield near & Q(pk__endswith=part["tail"]) if part["tail"] else near
    parts = term.split(":")
    for cut in range(1, min(len(parts), MOST_SEPARATORS + 1)):
        yield Q(subject_type=":".join(parts[:cut]), subject_id=":".join(parts[cut:]))
    kinds = subject_types(jobs.model._meta.db_table, jobs.db, MOST_SUBJECT_TYPES)
    if kinds:
        yield Q(subject_type__in=kinds, subject_id=term)
