"""Which jobs a document needs. The one place that enqueues."""

from collections.abc import Iterable

from django_jobqueue import JobRequest
from django_jobqueue.models import Job

from .models import Document, Kind

CHECKSUM = "files.checksum"
TEXT_STATISTICS = "files.text_statistics"
LANGUAGE = "files.language"
THUMBNAIL = "files.thumbnail"
SCAN = "files.scan"
ARCHIVE = "files.archive"

STEPS_OF_KIND = {
    Kind.TEXT: (CHECKSUM, TEXT_STATISTICS, LANGUAGE, SCAN, ARCHIVE),
    Kind.IMAGE: (CHECKSUM, THUMBNAIL, SCAN, ARCHIVE),
    Kind.OTHER: (CHECKSUM, SCAN, ARCHIVE),
}

OUTAGE_EVERY = 3


def enqueue(documents: Iterable[Document], *, reason: str) -> list[Job]:
    """Enqueue every step of every document; call it in the transaction that saves them.

    A step that is already waiting or running is not enqueued twice: its job is returned. The
    first document, and every third after it, meets a simulated outage of the archive.
    """
    requests = []
    for index, document in enumerate(documents):
        for step in STEPS_OF_KIND[Kind(document.kind)]:
            payload = {"document": document.pk}
            if step == ARCHIVE and index % OUTAGE_EVERY == 0:
                payload["simulated_outages"] = 1
            requests.append(JobRequest(step, payload, subject=document.subject, reason=reason))
    return Job.objects.enqueue_many(requests)
