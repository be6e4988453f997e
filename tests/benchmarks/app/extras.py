"""Adds to this worker's process what its measure asked for."""

import os

from django_jobqueue import job_handler
from django_jobqueue.models import JobManager
from tests.benchmarks import extras, stamps


def noop(job):
    stamps.count()


for name in extras.type_names(int(os.environ.get(extras.TYPES, "0"))):
    job_handler(name)(noop)

if extras.CLAIM_TIMES in os.environ:
    extras.watch_claims(JobManager, os.environ[extras.CLAIM_TIMES])
