"""The types of subjects, found by skipping through their index."""

from django.db import connections

SUBJECT_TYPES = """
WITH RECURSIVE subject(type) AS (
    SELECT min(job.subject_type) FROM {job} AS job WHERE job.subject_id IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(job.subject_type) FROM {job} AS job
        WHERE job.subject_id IS NOT NULL AND job.subject_type > subject.type
    )
    FROM subject
    WHERE subject.type IS NOT NULL
)
SELECT subject.type FROM subject WHERE subject.type IS NOT NULL LIMIT %s
"""


def subject_types(table: str, using: str, limit: int) -> list[str]:
    """Return the types of subjects that jobs in a table have, in order, at most `limit`.

    Each costs one visit of the index of subjects, however many jobs have it.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(SUBJECT_TYPES.format(job=connections[using].ops.quote_name(table)), [limit])
        return [name for (name,) in cursor.fetchall()]
