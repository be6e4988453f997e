"""UUIDv7 made in Python: known before the insert, ordered by time, the same on every database."""

import sys
from uuid import UUID

if sys.version_info >= (3, 14):
    from uuid import uuid7 as make_uuid7
else:
    from uuid_utils.compat import uuid7 as make_uuid7


def uuid7() -> UUID:
    """Return a new UUIDv7; those of one process are strictly increasing."""
    value: UUID = make_uuid7()
    return value
