"""Schedules in the admin: the one thing of the queue that people edit by form."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from ..models import Schedule

DEFINITION = (
    "name",
    "type",
    "queue",
    "priority",
    "payload",
    "cron",
    "timezone",
    "catch_up",
    "limit",
)
TICKS = ("declared_in_code", "last_tick_at", "next_tick_at")


@admin.register(Schedule)
class ScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Made, changed and paused here; one that is declared in code can only be paused."""

    list_display = ("name", "type", "cron", "timezone", "paused", "last_tick_at", "next_tick_at")
    list_filter = ("paused", "declared_in_code")
    search_fields = ("name", "type")
    fields = (*DEFINITION, "paused", *TICKS)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Leave the definition of a declared schedule to the code that declares it."""
        declared = obj is not None and obj.declared_in_code
        return (*DEFINITION, *TICKS) if declared else TICKS
