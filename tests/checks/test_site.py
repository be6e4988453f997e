"""What the site sets outside of JOBQUEUE, and its handlers."""

import itertools
import sys
from types import ModuleType

import pytest
from django.test import override_settings

from django_jobqueue import job_handler, registry
from tests.aliases import alias
from tests.checks.looking import checked, ids_in, jobs_on


def test_jobs_on_another_alias_are_w013():
    with alias("jobs"), jobs_on("jobs"):
        text = checked()

    assert ids_in(text) == ["W013"]
    assert 'Jobs are written to the database "jobs"' in text


def test_naive_times_are_w014():
    with override_settings(USE_TZ=False):
        text = checked()

    assert ids_in(text) == ["W014"]
    assert "USE_TZ is False" in text


def test_switches_that_are_off_are_told_and_harmless():
    with override_settings(JOBQUEUE={"PURGE_ENABLED": False, "REAPER_ENABLED": False}):
        text = checked("--fail-level", "WARNING")

    assert ids_in(text) == ["I001", "I002"]
    assert "jobqueue purge --yes" in text


def test_a_type_longer_than_its_column_is_e007():
    name = "test." + "x" * 196
    before = registry.handlers()
    try:
        job_handler(name)(lambda job: None)
        text = checked()
        assert ids_in(text) == ["E007"]
        assert "has 201 characters; a row holds 200" in text
        registry._handlers.pop(name)
        job_handler(name[:200])(lambda job: None)
        assert ids_in(checked()) == []
    finally:
        registry._handlers.clear()
        registry._handlers.update(before)


NUMBERS = itertools.count()
HEAD = "from django_jobqueue import JobHandler, job_handler, registry, schedule\n"
CLASS = """
class Build(JobHandler):
    type = "reports.build"
    def process(self, job):
        pass
"""
SUBCLASS = """
class Other(Build):
    pass
registry.register(Other())
"""


@pytest.fixture
def module(monkeypatch):
    """Load a module of a source; it and its handlers are forgotten after."""
    monkeypatch.setattr(registry, "_handlers", dict(registry.handlers()))
    name = f"reports{next(NUMBERS)}.jobs"  # Its own: what an older test left may still be alive.

    def load(source):
        made = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made)
        exec(HEAD + source, vars(made))  # the sources are ours
        return made

    return load


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("@schedule('nightly', '0 3 * * *')\ndef build(job): pass", "build"),
        (f"@schedule('nightly', '0 3 * * *'){CLASS}", "Build"),
        (
            f"@schedule('nightly', '0 3 * * *'){CLASS}{SUBCLASS}",
            "Build",
        ),
    ],
)
def test_a_schedule_that_never_fires_is_w016(module, source, place):
    loaded = module(source)

    text = checked()

    assert ids_in(text) == ["W016"]
    assert (
        f"The schedule 'nightly' is on {loaded.__name__}.{place}, which is no registered handler"
        in text
    )


@pytest.mark.parametrize(
    "source",
    [
        "@schedule('nightly', '0 3 * * *')\n@job_handler('reports.build')\ndef build(job): pass",
        "@job_handler('reports.build')\n@schedule('nightly', '0 3 * * *')\ndef build(job): pass",
        f"@schedule('nightly', '0 3 * * *'){CLASS}registry.register(Build())",
    ],
)
def test_a_schedule_of_a_registered_handler_is_no_mistake(module, source):
    loaded = module(source)

    assert ids_in(checked()) == []
    assert loaded is not None


def test_a_schedule_of_a_module_that_failed_is_told_by_e003_alone(module, monkeypatch):
    loaded = module("@schedule('nightly', '0 3 * * *')\ndef build(job): pass")
    monkeypatch.delitem(sys.modules, loaded.__name__)

    assert ids_in(checked()) == []
    assert loaded is not None
