"""The handlers of the handlers page, registered and run as a site would."""

import threading
from datetime import timedelta

import pytest

from django_jobqueue import ExecutionProfile, registry
from django_jobqueue.handlers.purge import site_keepings
from django_jobqueue.models import Job
from django_jobqueue.policy import Keeping
from django_jobqueue.signals import job_settled
from django_jobqueue.states import JobStatus
from django_jobqueue.worker import Pool
from tests.pages import example

PAGE = "handlers.md"
SECONDS = 30

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_handlers", {})


@pytest.fixture
def settled():
    """Set when a job became terminal, its event kept."""
    happened = threading.Event()

    def hear(event, **kwargs):
        happened.event = event
        happened.set()

    job_settled.connect(hear)
    yield happened
    job_settled.disconnect(hear)


@pytest.fixture
def pool():
    pool = Pool(concurrency=1)
    yield pool
    pool.stop(grace=SECONDS)


def load(caption, **members):
    namespace = {"__name__": "an_example", **members}
    exec(example(PAGE, caption), namespace)  # the page is ours
    return namespace


def test_the_function_and_the_class_run_with_what_they_declare(pool, settled):
    render = load("reports/jobs.py")["render"]
    archive = registry.register(load("reports/handlers.py")["Archive"]())
    pool.start()

    job = render.enqueue({"chapters": ["one", "two"]})
    assert settled.wait(SECONDS)

    job.refresh_from_db()
    assert (job.status, job.result, job.max_attempts) == (JobStatus.SUCCEEDED, {"pages": 2}, 5)
    assert (archive.type, archive.profile.problem()) == ("reports.archive", None)
    assert registry.types() == ("reports.archive", "reports.render")


def test_the_purge_keeps_the_types_as_long_as_the_page_says():
    load("accounts/jobs.py")

    assert site_keepings(Job.objects) == [
        Keeping(timedelta(days=30), except_types=("accounts.export", "accounts.heartbeat")),
        Keeping(timedelta(hours=1), ("accounts.heartbeat",)),
        Keeping(timedelta(days=3650), ("accounts.export",)),
    ]


def test_a_handler_that_asks_notices_that_it_ran_out_of_time(pool, settled):
    go_on, left = threading.Event(), threading.Event()
    stored = []

    def parts_of(_export):
        try:
            yield "before the timeout"
            go_on.wait(SECONDS)
            yield "after it"
        finally:
            left.set()

    handler = load("exports/jobs.py", parts_of=parts_of, store=stored.append)["write_export"]
    handler.profile = ExecutionProfile(max_runtime=0.2, max_attempts=1)
    pool.start()

    handler.enqueue({"export": 7})
    assert settled.wait(SECONDS)
    assert settled.event.status == JobStatus.FAILED
    assert settled.event.last_error.startswith("JobTimeoutError")
    go_on.set()

    assert left.wait(SECONDS)
    assert stored == ["before the timeout"]
    assert Job.objects.get().status == JobStatus.FAILED
