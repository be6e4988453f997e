"""How files become documents: rows and jobs in one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import transaction

from django_jobqueue.models import Job

from . import steps
from .kinds import kind_of
from .models import Document

if TYPE_CHECKING:
    from django.core.files.base import File

SNIFF_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Intake:
    """What was taken in: the documents, the new ones among them, and their jobs."""

    documents: list[Document]
    created: int
    jobs: list[Job]
    waited: int = 0
    """How many of the jobs waited or ran already: enqueueing them again changed nothing."""


def add_uploads(files: Iterable["File[bytes]"]) -> Intake:
    """Store uploaded files, and enqueue their jobs.

    When anything fails there are no rows, no jobs and no stored files.
    """
    documents: list[Document] = []
    try:
        # One by one, so that those before a failure are known and can be removed.
        documents.extend(stored(file) for file in files)
        # Both or neither: a document without jobs would wait forever, a job without its
        # document would have nothing to do.
        with transaction.atomic():
            for document in documents:
                document.save()
            jobs = steps.enqueue(documents, reason="uploaded")
    except BaseException:
        for document in documents:
            document.upload.delete(save=False)
        raise
    return Intake(documents, created=len(documents), jobs=jobs)


def stored(file: "File[bytes]") -> Document:
    """Return an unsaved document whose file is in the storage."""
    first_bytes = file.read(SNIFF_BYTES)
    file.seek(0)
    name = Path(file.name or "unnamed").name[-255:]
    document = Document(name=name, kind=kind_of(name, first_bytes), size=file.size)
    document.upload.save(name, file, save=False)
    return document


def add_folder(paths: Sequence[Path], *, reason: str) -> Intake:
    """Register files where they lie, and enqueue their jobs. A known file is not added twice."""
    documents = []
    created = 0
    with transaction.atomic():
        for path in paths:
            document, is_new = registered(path)
            documents.append(document)
            created += is_new
        active = set(Job.objects.active().values_list("pk", flat=True))
        jobs = steps.enqueue(documents, reason=reason)
    return Intake(documents, created, jobs, waited=sum(job.pk in active for job in jobs))


def registered(path: Path) -> tuple[Document, bool]:
    """Return the document of this file, and whether it is new."""
    with path.open("rb") as stream:
        first_bytes = stream.read(SNIFF_BYTES)
    kind = kind_of(path.name, first_bytes)
    return Document.objects.update_or_create(
        folder_path=str(path),
        defaults={"name": path.name, "kind": kind, "size": path.stat().st_size},
    )
