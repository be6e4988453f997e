"""How long terminal jobs are kept: some types for their own time, all others for the site's."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from ..exceptions import shown
from .profile import seconds_of, unusable_duration

LONGEST_RETENTION = timedelta(days=36_500)
"""A hundred years, which is for ever. A retention that is refused would mean an early end."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Types whose terminal jobs are kept equally long.

    `types` None: all types but `except_types`.
    """

    retention: timedelta
    types: tuple[str, ...] | None = None
    except_types: tuple[str, ...] = ()


def retention_problem(value: object) -> str | None:
    """Say what makes a type's own retention unusable; None for a good one, or none at all."""
    if value is None:
        return None
    expected = unusable_duration(value, longest=LONGEST_RETENTION.total_seconds())
    return None if expected is None else f"it is {shown(value)}; {expected}"


def keepings(
    own: Mapping[str, timedelta | float | None], *, history_retention: timedelta
) -> list[Keeping]:
    """Group the types by how long their jobs are kept; `history_retention` is for the rest.

    `own`: the retention of each known type, None where it has none. The rest comes first, and
    includes the types that nobody knows here.
    """
    grouped: dict[timedelta, list[str]] = {}
    for job_type, retention in sorted(own.items()):
        if retention is not None:
            kept_for = timedelta(seconds=seconds_of(retention))
            grouped.setdefault(kept_for, []).append(job_type)
    apart = tuple(job_type for types in grouped.values() for job_type in types)
    rest = Keeping(history_retention, except_types=tuple(sorted(apart)))
    return [rest, *(Keeping(kept_for, tuple(types)) for kept_for, types in sorted(grouped.items()))]
