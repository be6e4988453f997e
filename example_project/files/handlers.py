"""The handler that is a class, registered in `apps.py`."""

import hashlib
from datetime import timedelta
from typing import Any

from django_jobqueue import ExecutionProfile, JobHandler
from django_jobqueue.models import Job

from . import outcome, steps

BLOCK_BYTES = 1024 * 1024


class Checksum(JobHandler):
    """The SHA-256 of a document.

    Safe to repeat: the same bytes give the same sum, and it replaces the one stored before.
    """

    type = steps.CHECKSUM
    label = "Checksum"
    profile = ExecutionProfile(max_runtime=timedelta(minutes=5), max_attempts=3)

    def process(self, job: Job) -> dict[str, Any]:
        """Read the file in blocks, so that its size costs no memory."""
        document = outcome.document_of(job)
        digest = hashlib.sha256()
        with outcome.opened(document) as stream:
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
        return outcome.keep(document, job, {"sha256": digest.hexdigest()})
