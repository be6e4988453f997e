import os
from contextlib import contextmanager

import pytest

from tests.browser import chromium, policy, scene
from tests.processes import Site

SWITCH = "JOBQUEUE_BROWSER"
"""`required`: a missing browser is a failure. `off`: nothing is tried. Else it is skipped."""


@pytest.fixture(scope="session")
def _chromium():
    wanted = os.environ.get(SWITCH, "")
    if wanted == "off":
        pytest.skip(f"{SWITCH} is off")
    if chromium.program() is None:
        if wanted == "required":
            pytest.fail("Chromium or its driver is not here; install chromium and chromium-driver.")
        pytest.skip("needs Chromium and chromedriver")
    with chromium.running() as browser:
        yield browser


@pytest.fixture
def browser(_chromium):
    """Chromium, logged out, at desktop width. It must have nothing to complain about."""
    _chromium.look(chromium.LOOKS[0])
    _chromium.forget()
    yield _chromium
    assert _chromium.complaints() == []


@pytest.fixture(scope="session")
def _address(_chromium, django_db_setup, tmp_path_factory):
    with served(tmp_path_factory, *policy.SERVED, *policy.STRICT) as address:
        yield address


@pytest.fixture(scope="session")
def _unfold_address(_chromium, django_db_setup, tmp_path_factory):
    pytest.importorskip("unfold")
    with served(tmp_path_factory, *policy.SERVED, *policy.UNFOLD) as address:
        yield address


@pytest.fixture
def address(_address, transactional_db):
    """The site whose pages may load nothing but files of their own."""
    return _address


@pytest.fixture
def unfold_address(_unfold_address, transactional_db):
    """The same site in the clothes of django-unfold, which needs a weaker policy."""
    return _unfold_address


@pytest.fixture
def log_in(browser):
    """Log in by the form, and land where it leads."""

    def by_form(address, user):
        browser.open(f"{address}/admin/")
        browser.fill("#id_username", user.username)
        browser.fill("#id_password", scene.PASSWORD)
        browser.follow("[type=submit]")

    return by_form


@contextmanager
def served(folders, *lines):
    """Serve one site for all tests of the run: a server takes seconds to start."""
    with Site(folders.mktemp("site"), "JOBQUEUE = {}", *lines).served() as address:
        yield address
