"""The handlers that the benchmark's workers run."""

import time

from django_jobqueue import job_handler
from tests.benchmarks import stamps
from tests.benchmarks.app import extras  # noqa: F401 (adds what measures ask for)


@job_handler("bench.noop")
def noop(job):
    """Do nothing but count: every k-th call writes a stamp, if stamps are asked for."""
    stamps.count()


@job_handler("bench.stamp")
def stamp(job):
    """Write down when this job's handler started, beside what its payload says."""
    stamps.write(f"{time.time():.6f} {job.payload.get('at', '')} {job.pk}")
