"""Worker processes in the admin."""

from typing import Any

from django.contrib import admin
from django.db import connections
from django.db.models import DateTimeField, ExpressionWrapper, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..database.clock import database_clock
from ..insights import ALIVE_WITHIN
from ..models import WorkerProcess
from ..wording import mode_in_words
from .badges import badge
from .columns import moment
from .durations import short_duration
from .readonly import ReadOnlyAdmin


@admin.register(WorkerProcess)
class WorkerProcessAdmin(ReadOnlyAdmin):
    """Worker processes as they last reported themselves."""

    list_display = ("host", "pid", "version", "mode_name", "busy_slots", "last_seen", "presence")
    fields = (
        *("host", "pid", "version", "mode_name", "slots", "busy", "types", "queues"),
        *("started_at", "seen_at"),
    )
    readonly_fields = fields
    ordering = ("host", "pid")

    class Media:
        css = {"all": ("django_jobqueue/jobs.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add when the rows were read, by the clock that wrote them."""
        clock: Any = database_clock(connections[super().get_queryset(request).db])
        read_at = ExpressionWrapper(clock, output_field=DateTimeField())
        rows: QuerySet[Any] = super().get_queryset(request).annotate(read_at=read_at)
        return rows

    @admin.display(description=_("mode"), ordering="mode")
    def mode_name(self, process: WorkerProcess) -> str:
        """What the process claims."""
        return mode_in_words(process.mode)

    @admin.display(description=_("busy slots"))
    def busy_slots(self, process: WorkerProcess) -> str:
        """How many slots run a job, of all."""
        return f"{process.busy} / {process.slots}"

    @admin.display(description=_("last seen"))
    def last_seen(self, process: Any) -> SafeString:
        """How long ago the process reported itself."""
        ago = gettext("%(duration)s ago") % {
            "duration": short_duration(process.read_at - process.seen_at)
        }
        return moment(process.seen_at, ago)

    @admin.display(description=_("presence"))
    def presence(self, process: Any) -> SafeString:
        """Whether the process still reports itself; a stopped one removes its row."""
        silent = process.read_at - process.seen_at > ALIVE_WITHIN
        return badge("silent", "⚠", _("silent")) if silent else badge("live", "✓", _("live"))
