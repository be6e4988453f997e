"""What is paused, in the admin."""

from django.contrib import admin

from ..models import QueueControl
from .readonly import ReadOnlyAdmin


@admin.register(QueueControl)
class QueueControlAdmin(ReadOnlyAdmin):
    """What is paused."""

    list_display = ("kind", "name", "reason", "paused_at")
