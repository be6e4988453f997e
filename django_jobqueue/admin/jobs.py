"""Jobs in the admin. What a job carries is for those who may view payloads, and only for them."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from ..models import Job, JobAttempt
from .access import may_view_payloads
from .job_list import JobList

SEEN_BY_VIEWERS = (
    "id",
    "type",
    "queue",
    "status",
    "priority",
    "subject_type",
    "subject_id",
    "reason",
    "dedup_key",
    "attempts",
    "max_attempts",
    "error_class",
    "scheduled_for",
    "ready_at",
    "created_at",
    "started_at",
    "finished_at",
    "executor",
    "worker",
    "lease_expires_at",
    "trace_context",
    "org_id",
)
CARRIED = ("payload", "result", "last_error")


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]
    """The attempts of a job that did not succeed."""

    model = JobAttempt
    extra = 0
    can_delete = False
    show_change_link = False
    ordering = ("pk",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Show the error's text to those who may view payloads."""
        fields = ("number", "outcome", "started_at", "finished_at", "worker", "exception_class")
        return (*fields, "message", "traceback") if may_view_payloads(request) else fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds attempts."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits attempts."""
        return False


@admin.register(Job)
class JobAdmin(JobList):
    """The list of jobs, and one job with its attempts."""

    inlines = (AttemptInline,)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Show what the job carries to those who may view payloads."""
        return (*SEEN_BY_VIEWERS, *CARRIED) if may_view_payloads(request) else SEEN_BY_VIEWERS

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Leave the big columns out of the list."""
        return super().get_queryset(request).defer("payload", "result")
