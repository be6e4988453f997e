import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from django_jobqueue import ExecutionProfile, JobHandler, job_handler, registry
from django_jobqueue.models import Job
from tests.claims import row


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """A copy of the registry, thrown away after the test."""
    monkeypatch.setattr(registry, "_handlers", dict(registry.handlers()))


class Report(JobHandler):
    type = "test.report"

    def process(self, job):
        return job.payload


def test_a_handler_needs_its_process():
    with pytest.raises(TypeError, match="process"):
        JobHandler()


def test_a_handler_has_no_limits_of_its_own():
    report = Report()

    assert (report.profile, report.provider, report.label) == (None, None, "")
    assert not report.node_eligible
    assert not report.is_async


def test_a_handler_knows_that_its_process_is_async():
    class Async(Report):
        async def process(self, job):
            return job.payload

    assert Async().is_async


def test_a_handler_shows_its_type():
    assert repr(Report()) == "<Report 'test.report'>"


def test_a_decorated_function_is_a_registered_handler():
    @job_handler(
        "test.decorated",
        max_runtime=timedelta(minutes=30),
        max_attempts=5,
        provider="acme",
        label="Build",
    )
    def build(job):
        """Build it."""
        return job.payload

    assert registry.get("test.decorated") is build
    assert build.profile == ExecutionProfile(timedelta(minutes=30), 5)
    assert (build.type, build.provider, build.label) == ("test.decorated", "acme", "Build")
    assert (build.__name__, build.__doc__) == ("build", "Build it.")
    assert not build.is_async


def test_a_decorated_function_without_limits_has_no_profile():
    @job_handler("test.decorated")
    def build(job):
        pass

    assert build.profile is None


@pytest.mark.parametrize("limits", [{"max_runtime": 0}, {"max_attempts": 1}])
def test_one_limit_makes_a_profile(limits):
    @job_handler("test.decorated", **limits)
    def build(job):
        pass

    assert build.profile == ExecutionProfile(**limits)


def test_a_decorated_function_can_still_be_called():
    @job_handler("test.decorated")
    def build(job):
        return job.payload

    job = Job(payload={"n": 1})

    assert build(job) == build.process(job) == {"n": 1}


def test_a_decorated_coroutine_function_is_async():
    @job_handler("test.decorated")
    async def build(job):
        return job.payload

    assert build.is_async
    assert asyncio.run(build.process(Job(payload={"n": 1}))) == {"n": 1}


def test_a_decorator_without_its_type_says_how_to_write_it():
    with pytest.raises(TypeError, match=r'write @job_handler\("app.verb"\)'):

        @job_handler
        def build(job):
            pass


@pytest.mark.django_db
def test_a_handler_enqueues_jobs_of_its_type():
    job = Report().enqueue({"n": 1}, subject=("report", 7), queue="mail", delay=3)

    stored = row(job)
    assert (stored["type"], stored["payload"], stored["queue"]) == ("test.report", {"n": 1}, "mail")
    assert Report().enqueue(subject=("report", 7), queue="mail") == job


@pytest.mark.django_db
def test_a_handler_enqueues_from_async_code():
    job = async_to_sync(Report().aenqueue)({"n": 1}, priority=3)

    assert (row(job)["type"], row(job)["payload"], row(job)["priority"]) == (
        "test.report",
        {"n": 1},
        3,
    )
