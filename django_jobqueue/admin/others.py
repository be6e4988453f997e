"""The small tables in the admin."""

from django.contrib import admin

from ..models import QueueControl, WorkerProcess
from .readonly import ReadOnlyAdmin


@admin.register(QueueControl)
class QueueControlAdmin(ReadOnlyAdmin):
    """What is paused."""

    list_display = ("kind", "name", "reason", "paused_at")


@admin.register(WorkerProcess)
class WorkerProcessAdmin(ReadOnlyAdmin):
    """Worker processes as they last reported themselves."""

    list_display = ("host", "pid", "version", "mode", "slots", "busy", "started_at", "seen_at")
