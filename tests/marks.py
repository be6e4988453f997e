"""Marks that several modules share."""

import os

import pytest

from tests import databases

on_postgresql = pytest.mark.skipif(
    databases.chosen_kind(os.environ) != databases.POSTGRESQL,
    reason="row locks, isolation levels and SKIP LOCKED need PostgreSQL",
)
on_sqlite = pytest.mark.skipif(
    databases.chosen_kind(os.environ) != databases.SQLITE,
    reason="only SQLite locks the whole file",
)
# Committed rows, which other connections see.
committed = pytest.mark.django_db(transaction=True)
