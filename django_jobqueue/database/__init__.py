"""What differs per database, behind one interface."""

from functools import cache
from typing import TYPE_CHECKING

from django.db import connections

from .base import ClaimOptions, ClaimRequest, QueueDatabase, ReapRequest, Tables
from .operating import Operating
from .portable import Portable

if TYPE_CHECKING:
    from .postgresql import PostgreSQL

__all__ = [
    "ClaimOptions",
    "ClaimRequest",
    "Operating",
    "QueueDatabase",
    "ReapRequest",
    "Tables",
    "queue_database",
]


def queue_database(tables: Tables, using: str) -> QueueDatabase:
    """Return the transitions for the database behind the alias `using`."""
    if connections[using].vendor == "postgresql":
        return speaks_postgresql()(tables, using)
    return Portable(tables, using)


@cache
def speaks_postgresql() -> "type[PostgreSQL]":
    """Import what needs psycopg, which sites on other databases may not have."""
    from .postgresql import PostgreSQL

    return PostgreSQL
