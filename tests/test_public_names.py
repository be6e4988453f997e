import subprocess
import sys
from pathlib import Path

import pytest

import django_jobqueue

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import django_jobqueue
from django.apps import apps
import django.conf
{body}
assert not apps.apps_ready
assert not django.conf.settings.configured
"""


def run(body):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(body=body)],
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", [*django_jobqueue.__all__, "*"])
def test_a_public_name_can_be_imported_before_django_is_set_up(name):
    done = run(f"from django_jobqueue import {name}")

    assert done.returncode == 0, done.stderr


def test_handlers_can_be_written_before_django_is_set_up():
    done = run(
        """
from django_jobqueue import ExecutionProfile, JobHandler, JobRequest, job_handler, registry

class Build(JobHandler):
    type = "site.build"
    profile = ExecutionProfile(max_runtime=30)

    def process(self, job): ...

@job_handler("site.report")
def report(job): ...

registry.register(Build())
assert registry.types() == ("site.build", "site.report")
JobRequest("site.build", {"n": 1})
"""
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "django_jobqueue.exceptions",
            "JobQueueError JobTimeoutError EnqueueConflict InvalidPayload InvalidJob",
        ),
        (
            "django_jobqueue.policy",
            "LEASE_GRACE lease_for renew_interval_for max_attempts_for equal_jitter",
        ),
        ("django_jobqueue.conf", "settings"),
    ],
)
def test_the_names_of_a_module_can_be_imported_before_django_is_set_up(module, names):
    done = run(f"from {module} import {', '.join(names.split())}")

    assert done.returncode == 0, done.stderr


def test_models_are_where_the_contract_says():
    from django_jobqueue.models import (
        Job,
        JobAttempt,
        JobStatsRollup,
        QueueControl,
        Schedule,
        WorkerProcess,
    )

    models = (Job, JobAttempt, JobStatsRollup, QueueControl, Schedule, WorkerProcess)
    assert {model._meta.app_label for model in models} == {"django_jobqueue"}


def test_the_registry_is_the_module():
    from django_jobqueue import registry

    assert registry is sys.modules["django_jobqueue.registry"]
    assert django_jobqueue.__getattr__("registry") is registry


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'a_name'"):
        django_jobqueue.a_name  # noqa: B018 (reading is the act)


def test_every_error_is_in_one_tree():
    from django_jobqueue import exceptions

    errors = [value for value in vars(exceptions).values() if isinstance(value, type)]
    ours = [error for error in errors if error.__module__ == exceptions.__name__]

    assert all(issubclass(error, exceptions.JobQueueError) for error in ours)
