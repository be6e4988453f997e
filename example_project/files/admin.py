"""The documents in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from . import steps
from .models import Document, Result


class ResultInline(admin.TabularInline):  # type: ignore[type-arg]
    """What the jobs found out; people read it only."""

    model = Result
    extra = 0
    can_delete = False
    readonly_fields = ("step", "data", "made_at")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: results are made by jobs."""
        return False


@admin.register(Document)
class DocumentAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Documents are taken in by the site; here they are renamed, deleted and processed again."""

    list_display = ("name", "kind", "size", "added_at")
    list_filter = ("kind",)
    search_fields = ("name",)
    fields = ("name", "kind", "size", "file", "folder_path", "picture", "added_at")
    readonly_fields = fields[1:]
    inlines = (ResultInline,)
    actions = ("process_again",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: only the upload page stores a file and enqueues its jobs."""
        return False

    @admin.display(description="File")
    def file(self, document: Document) -> str:
        """Link to the download: stored files have no address of their own."""
        address = reverse("files:download", args=[document.pk])
        return format_html('<a href="{}">Download</a>', address)

    @admin.display(description="Thumbnail", empty_value="-")
    def picture(self, document: Document) -> str | None:
        """Show the thumbnail, when there is one."""
        if not document.thumbnail:
            return None
        address = reverse("files:thumbnail", args=[document.pk])
        return format_html('<img src="{}" alt="Thumbnail">', address)

    @admin.action(description="Process again", permissions=["change"])
    def process_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Enqueue every step of the chosen documents."""
        with transaction.atomic():
            jobs = steps.enqueue(queryset, reason="process again")
        self.message_user(request, f"{len(jobs)} jobs enqueued or under way.", messages.SUCCESS)
