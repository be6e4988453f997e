"""With `OTEL_ENABLED`, a request, what it enqueues and the jobs' work are one trace."""

import json
import re
from typing import Any

from tests.example_project.conftest import Site

UPLOAD = """
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
answer = Client().post("/", {"uploads": [SimpleUploadedFile("note.txt", b"One line.")]})
assert answer.status_code == 302, answer.content
"""


def spans_in(output: str) -> list[dict[str, Any]]:
    """Return the spans among what a process printed, in the order they ended."""
    decoder = json.JSONDecoder()
    starts = [found.start() for found in re.finditer(r"^\{", output, re.MULTILINE)]
    return [decoder.raw_decode(output, start)[0] for start in starts]


def test_request_enqueue_and_process_are_one_trace(site: Site) -> None:
    assert site.manage("migrate").returncode == 0
    upload = site.manage("shell", "-c", UPLOAD, OTEL_ENABLED="true", ALLOWED_HOSTS="testserver")
    assert upload.returncode == 0, upload.stderr
    worker = site.manage("run_jobworker", "--drain", OTEL_ENABLED="true")
    assert worker.returncode == 0, worker.stderr

    [request] = [span for span in spans_in(upload.stderr) if span["kind"] == "SpanKind.SERVER"]
    jobs = [span for span in spans_in(worker.stderr) if span["kind"] == "SpanKind.CONSUMER"]
    stored = dict(site.rows("SELECT type, count(*) FROM django_jobqueue_job GROUP BY type"))
    assert request["parent_id"] is None
    assert len(jobs) >= len(stored) > 1
    assert {span["name"] for span in jobs} == {f"job.process {name}" for name in stored}
    for span in jobs:
        assert span["context"]["trace_id"] == request["context"]["trace_id"]
        assert span["parent_id"] == request["context"]["span_id"]


def test_nothing_is_traced_without_it(site: Site) -> None:
    assert site.manage("migrate").returncode == 0
    upload = site.manage("shell", "-c", UPLOAD, ALLOWED_HOSTS="testserver")
    assert upload.returncode == 0, upload.stderr
    worker = site.manage("run_jobworker", "--drain")

    assert spans_in(upload.stderr) == spans_in(worker.stderr) == []
    assert site.rows("SELECT DISTINCT trace_context FROM django_jobqueue_job") == [(None,)]
