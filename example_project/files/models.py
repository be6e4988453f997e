"""A document and what the jobs found out about it."""

from pathlib import Path
from typing import BinaryIO, cast

from django.db import models
from django.urls import reverse


class Kind(models.TextChoices):
    """What a document holds, as far as the steps need to know."""

    TEXT = "text", "Text"
    IMAGE = "image", "Image"
    OTHER = "other", "Other"


class Document(models.Model):
    """A file the site looks after: an upload, or a file that stays where it is in a folder."""

    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=5, choices=Kind)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    upload = models.FileField(upload_to="uploads/%Y/%m", max_length=500, blank=True)
    folder_path = models.CharField(
        max_length=1000,
        blank=True,
        help_text="Where the file lies when it was not uploaded; it is only read.",
    )
    thumbnail = models.FileField(upload_to="thumbnails", max_length=500, blank=True)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-pk",)
        constraints = [
            models.UniqueConstraint(
                name="files_document_path_once",
                fields=["folder_path"],
                condition=~models.Q(folder_path=""),
            )
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the address of the document's page."""
        return reverse("files:document", args=[self.pk])

    def open(self) -> BinaryIO:
        """Open the file for reading; raises FileNotFoundError when it is gone."""
        if self.folder_path:
            return Path(self.folder_path).open("rb")
        return cast("BinaryIO", self.upload.open("rb"))

    @property
    def subject(self) -> tuple[str, int]:
        """What its jobs are about."""
        return ("document", self.pk)


class Result(models.Model):
    """What one step found out about one document; a repeated step replaces it."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="results")
    step = models.CharField(max_length=200, help_text="The type of the job that made it.")
    data = models.JSONField(default=dict)
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("step",)
        constraints = [
            models.UniqueConstraint(name="files_result_once", fields=["document", "step"])
        ]

    def __str__(self) -> str:
        return f"{self.step} of document {self.document_id}"
