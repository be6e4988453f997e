"""Removes the files of a deleted document, once its deletion is committed."""

from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete

from .models import Document


def connect() -> None:
    """Listen to deletions; connecting twice listens once."""
    post_delete.connect(remove_files, sender=Document, dispatch_uid="files.remove_files")


def remove_files(*, instance: Document, using: str, **_: Any) -> None:
    """Delete the upload and the thumbnail. A file in somebody's folder is never touched."""
    for stored in (instance.upload, instance.thumbnail):
        if stored:
            transaction.on_commit(partial(stored.storage.delete, str(stored.name)), using=using)
