"""A real worker process, and what a person reads of its errors."""

import pytest

from django_jobqueue.masking import MASK
from django_jobqueue.models import Job

SECRET = "hunter2"

APP = """
from django.apps import AppConfig

class Careless(AppConfig):
    name = "careless"

    def ready(self):
        import logging
        from django_jobqueue import job_handler

        @job_handler("careless", max_attempts=1)
        def careless(job):
            logging.getLogger("careless").warning("about to fail")
            try:
                int("password=hunter2")
            except ValueError as cause:
                raise ValueError("cannot reach postgres://bob:hunter2@db/site") from cause
"""

SETTINGS = """
INSTALLED_APPS = [*INSTALLED_APPS, "careless.Careless"]
LOGGING = {
    "version": 1,
    "filters": {"job": {"()": "django_jobqueue.job_context.JobContextFilter"}},
    "formatters": {"text": {"format": "[%(job_id)s] %(name)s %(message)s"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "filters": ["job"], "formatter": "text"}
    },
    "root": {"handlers": ["stderr"], "level": "DEBUG"},
}
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_names_the_job_and_no_secret(site, processes):
    job = Job.objects.enqueue("careless", {"token": SECRET})
    made = site(SETTINGS)
    (made.folder / "careless.py").write_text(APP)

    done = made.manage("run_jobworker", "--drain", "--processes", processes)

    assert f"[{job.pk}] careless about to fail" in done.stderr
    assert f"ValueError: cannot reach postgres://bob:{MASK}@db/site" in done.stderr
    assert SECRET not in done.stderr + done.stdout
