"""Fixtures for pytest.

Enable them in the root `conftest.py`:

    pytest_plugins = ["django_jobqueue.testing.pytest_plugin"]
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .clock import FakeClock


@pytest.fixture
def jobqueue_clock() -> "Iterator[FakeClock]":
    """A `fake_clock` that begins now and lasts for the test; the test needs the database."""
    from .clock import fake_clock

    with fake_clock() as clock:
        yield clock
