"""Handlers that are functions; django_jobqueue finds this module by its name.

A job may run twice: after a retry, or when a worker died before it could report. Each handler
says why that does no harm.
"""

import asyncio
import threading
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.files.base import ContentFile

from django_jobqueue import PermanentError, job_handler
from django_jobqueue.models import Job

from . import languages, outcome, pictures, steps, texts
from .models import Document

SCAN_BLOCKS = 8
LANGUAGE_BYTES = 64 * 1024


class ArchiveUnavailable(Exception):
    """The simulated archive does not answer; the next attempt may succeed."""


@job_handler(steps.TEXT_STATISTICS, label="Text statistics", max_runtime=timedelta(minutes=5))
def text_statistics(job: Job) -> dict[str, Any]:
    """Count lines and words. Safe to repeat: it reads, and replaces its own result."""
    document = outcome.document_of(job)
    with outcome.opened(document) as stream:
        return outcome.keep(document, job, texts.statistics(stream))


@job_handler(steps.THUMBNAIL, label="Thumbnail", max_runtime=timedelta(minutes=2))
def thumbnail(job: Job) -> dict[str, Any]:
    """Make a small picture. Safe to repeat: the new one takes the place of the old one.

    A file that is no image stays one however often we try, so it fails for good.
    """
    document = outcome.document_of(job)
    with outcome.opened(document) as stream:
        try:
            picture = pictures.reduced(stream)
        except pictures.NotAnImage as error:
            raise PermanentError(f"{document.name} is not an image: {error}") from error
    replace_thumbnail(document, picture.png)
    data = {"format": picture.format, "width": picture.width, "height": picture.height}
    return outcome.keep(document, job, data)


def replace_thumbnail(document: Document, png: bytes) -> None:
    """Store the picture, point the document to it, and only then drop the earlier file."""
    earlier, storage = document.thumbnail.name, document.thumbnail.storage
    document.thumbnail.save(f"{document.pk}.png", ContentFile(png), save=False)
    # Only this column: another job or a person may be changing the row.
    kept = Document.objects.filter(pk=document.pk).update(thumbnail=document.thumbnail.name)
    if not kept:
        storage.delete(str(document.thumbnail.name))
        raise PermanentError(f"document {document.pk} was deleted")
    if earlier:
        storage.delete(earlier)


@job_handler(steps.SCAN, label="Scan (slow)", max_runtime=timedelta(minutes=10))
def scan(job: Job) -> dict[str, Any]:
    """Stand in for a slow tool, such as a virus scanner: it looks at a block, then takes a pause.

    Safe to repeat: it reads, and replaces its own result.
    """
    document = outcome.document_of(job)
    pause = threading.Event()
    zero_bytes = 0
    with outcome.opened(document) as stream:
        for _ in range(SCAN_BLOCKS):
            zero_bytes += stream.read(document.size // SCAN_BLOCKS + 1).count(0)
            pause.wait(settings.SCAN_SECONDS / SCAN_BLOCKS)
    return outcome.keep(document, job, {"simulated": True, "zero_bytes": zero_bytes})


@job_handler(
    steps.ARCHIVE, label="Archive (unreliable)", max_attempts=5, provider="simulated-archive"
)
def archive(job: Job) -> dict[str, Any]:
    """Stand in for a remote archive that now and then does not answer. Nothing is sent.

    The payload says how many attempts meet an outage, so a demonstration always shows a retry.
    Safe to repeat: a real archive would get the document's number as the key, and so keep one
    copy.
    """
    document = outcome.document_of(job)
    if job.attempts <= job.payload.get("simulated_outages", 0):
        raise ArchiveUnavailable("the simulated archive did not answer")
    return outcome.keep(document, job, {"simulated": True, "key": f"document-{document.pk}"})


@job_handler(steps.LANGUAGE, label="Language (async)", max_runtime=timedelta(minutes=1))
async def language(job: Job) -> dict[str, Any]:
    """Guess the language, on the worker's event loop.

    Waiting for the file holds up no other async job. Safe to repeat: it reads, and replaces its
    own result.
    """
    # Queries go through sync_to_async, whose thread has a connection of this job's own.
    document = await sync_to_async(outcome.document_of)(job)
    text = await asyncio.to_thread(beginning, document)
    data = languages.guess(text)
    return await sync_to_async(outcome.keep)(document, job, data)


def beginning(document: Document) -> str:
    """Return the first part of the file as text."""
    with outcome.opened(document) as stream:
        return stream.read(LANGUAGE_BYTES).decode(errors="replace")
