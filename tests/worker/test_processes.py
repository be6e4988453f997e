"""Real worker processes at work."""

import pytest

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus

pytestmark = pytest.mark.usefixtures("transactional_db")

LATE_APP = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp.late"]'


def test_a_handler_registered_last_of_all_is_in_the_first_claim(site):
    """The late job is the first by priority, and the worker claims one job only."""
    other = Job.objects.enqueue("test.echo")
    late = Job.objects.enqueue("test.late", priority=-1)

    done = site(LATE_APP).manage("run_jobworker", "--max-jobs", "1", "--concurrency", "1")

    assert done.returncode == 0, done.stderr
    late.refresh_from_db()
    other.refresh_from_db()
    assert (late.status, late.result) == (JobStatus.SUCCEEDED, 1)
    assert other.status == JobStatus.PENDING


def test_a_pool_started_before_every_app_is_ready_is_refused(site):
    early = """
import django.apps
from django.apps import AppConfig
class Early(AppConfig):
    name = "early"
    def ready(self):
        from django_jobqueue.worker import Pool
        Pool(1).start()
"""
    made = site('INSTALLED_APPS = [*INSTALLED_APPS, "early.Early"]')
    (made.folder / "early.py").write_text(early)

    done = made.manage("check")

    assert done.returncode != 0
    assert "SetupError: The pool was started while Django was still starting" in done.stderr
    assert "Start it after django.setup()" in done.stderr


def test_two_workers_share_the_jobs_and_start_each_once(site, notebook):
    number = 300
    jobs = Job.objects.enqueue_many(
        [JobRequest("test.note", notebook.payload) for _ in range(number)]
    )
    project = site()
    with (
        project.worker("--drain", "--concurrency", "3") as first,
        project.worker("--drain", "--concurrency", "3") as second,
    ):
        assert first.exit_code() == 0
        assert second.exit_code() == 0

    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert set(Job.objects.values_list("status", "attempts")) == {(JobStatus.SUCCEEDED, 1)}
    assert notebook.pids() <= {str(first.pid), str(second.pid)}


def test_two_workers_share_the_retries_too(site):
    Job.objects.enqueue_many([JobRequest("test.flaky") for _ in range(30)])
    project = site()
    with project.worker("--drain") as first, project.worker("--drain") as second:
        assert first.exit_code() == 0
        assert second.exit_code() == 0

    assert set(Job.objects.values_list("status", "attempts")) == {(JobStatus.SUCCEEDED, 2)}


BROKEN_LOGGING = """
class Broken:
    def __init__(self, error):
        self.error = error
    def filter(self, record):
        raise self.error

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "exits": {"()": "site_of_a_test.Broken", "error": SystemExit("from a filter")},
        "fails": {"()": "site_of_a_test.Broken", "error": RuntimeError("from a filter")},
    },
    "loggers": {
        "django_jobqueue.worker.events": {"filters": ["exits"], "level": "INFO"},
        "django_jobqueue.worker.loops": {"filters": ["fails"]},
    },
}
"""


def test_a_worker_whose_thread_died_ends_with_an_error(site):
    """A loop survives everything but its own logging: here a filter raises in both places."""
    Job.objects.enqueue("test.echo")
    with site(BROKEN_LOGGING, SHUTDOWN_GRACE=0.5).worker() as worker:
        assert worker.exit_code() == 1

    assert worker.errors.splitlines()[-1] == "CommandError: Threads of the worker died: exchange."
    assert "a thread died" in worker.output


EXIT_HOOKS = """
import atexit, pathlib, threading
def told(): (pathlib.Path(__file__).parent / "told").write_text("all is sent")
def hangs(): threading.Event().wait(60)
"""


@pytest.mark.parametrize("options", [[], ["--processes", "2"]], ids=["one", "supervised"])
def test_what_waits_for_the_end_of_python_runs_at_the_end_of_a_worker(site, options):
    made = site(EXIT_HOOKS, "atexit.register(told)")

    done = made.manage("run_jobworker", "--drain", *options)

    assert done.returncode == 0, done.stderr
    assert (made.folder / "told").read_text() == "all is sent"


def test_an_exit_hook_that_hangs_keeps_no_worker(site):
    made = site(EXIT_HOOKS, "atexit.register(told)", "atexit.register(hangs)")

    done = made.manage("run_jobworker", "--drain")

    assert done.returncode == 0, done.stderr
    assert not (made.folder / "told").exists()  # The last registered comes first.
