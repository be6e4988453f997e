"""What every handler does first and last: find its document, keep what it found."""

from typing import Any, BinaryIO

from django_jobqueue import PermanentError
from django_jobqueue.models import Job

from .models import Document, Result


def document_of(job: Job) -> Document:
    """Return the job's document; without it no later attempt can succeed."""
    pk = job.payload["document"]
    try:
        return Document.objects.get(pk=pk)
    except Document.DoesNotExist:
        raise PermanentError(f"document {pk} was deleted") from None


def opened(document: Document) -> BinaryIO:
    """Open the file; when it is gone for good, the job fails for good."""
    try:
        return document.open()
    except FileNotFoundError:
        raise PermanentError(f"the file of {document.name} is no longer there") from None


def keep(document: Document, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """Store the result under document and step, in the place of an earlier one."""
    Result.objects.update_or_create(document=document, step=job.type, defaults={"data": data})
    return data
