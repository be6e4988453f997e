"""`jobqueue purge` keeps the results of tasks as long as their alias says."""

from datetime import timedelta

import pytest

from django_jobqueue.models import Job
from tests.factories import JobFactory

TASKS = (
    'TASKS = {"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend", '
    '"QUEUES": [], "OPTIONS": {"result_retention": 90 * 86400}}}'
)
TASK = "tests.taskapp.tasks.add"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def purging_site(site):
    """Make a site with another app, and two jobs that ended 40 days ago: of a task, and of none."""
    for job_type in (TASK, "gone.type"):
        ended = Job.objects.now() - timedelta(days=40)
        JobFactory(type=job_type, succeeded=True, finished_at=ended)
    return lambda app: site(f'INSTALLED_APPS = [*INSTALLED_APPS, "{app}"]', TASKS)


def test_it_keeps_what_a_task_of_a_tasks_module_keeps(purging_site):
    done = purging_site("tests.taskapp").manage("jobqueue", "purge", "--yes")

    assert "1 job deleted." in done.stdout, done.stderr
    assert Job.objects.get().type == TASK


def test_it_refuses_while_a_tasks_module_cannot_be_imported(purging_site):
    site = purging_site("broken_app")
    package = site.folder / "broken_app"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text("import nowhere_to_be_found\n")

    refused = site.manage("jobqueue", "purge", "--yes")

    assert refused.returncode == 1
    assert "broken_app.tasks could not be imported" in refused.stderr
    assert Job.objects.count() == 2
