"""What the site sets outside of JOBQUEUE, and its handlers."""

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
    assert "jobqueue purge --older-than 30d" in text


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
