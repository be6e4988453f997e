import pytest

from django_jobqueue import registry
from tests.testing.jobs import handlers


@pytest.fixture(autouse=True)
def _site():
    """The handlers of a site, and nothing left of what a test registers."""
    before = registry.handlers()
    for handler in handlers():
        registry.register(handler)
    yield
    registry._handlers.clear()
    registry._handlers.update(before)
