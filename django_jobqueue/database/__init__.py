"""What differs per database, behind one interface."""

from django.db import connections

from .base import ClaimOptions, ClaimRequest, QueueDatabase, ReapRequest, Tables
from .portable import Portable
from .postgresql import PostgreSQL

__all__ = [
    "ClaimOptions",
    "ClaimRequest",
    "QueueDatabase",
    "ReapRequest",
    "Tables",
    "queue_database",
]


def queue_database(tables: Tables, using: str) -> QueueDatabase:
    """Return the transitions for the database behind the alias `using`."""
    if connections[using].vendor == "postgresql":
        return PostgreSQL(tables, using)
    return Portable(tables, using)
