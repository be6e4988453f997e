"""Schedules in the admin: the one thing of the queue that people edit by form."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import registry
from ..carried import Carried, carried_by
from ..models import Schedule
from .access import may_view_payloads
from .carried import WHOLE, json_text
from .lookups import OwnFiltersOnly
from .timeouts import explains_timeouts

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
MASKED_PAYLOAD = "masked_payload"

EDITABLE = 1_000_000
"""A payload of more characters fits no form, nor does one that is nested very deep."""


@admin.register(Schedule)
class ScheduleAdmin(OwnFiltersOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """Made, changed and paused here; one that is declared in code can only be paused.

    Everybody who may add a schedule gives it a payload. A stored one is read and changed only by
    those who may view payloads; for others it stays as it is.
    """

    list_display = (
        "name",
        "type_and_note",
        "cron",
        "timezone",
        "paused",
        "last_tick_at",
        "next_tick_at",
    )
    list_filter = ("paused", "declared_in_code")
    asked_by_filters = frozenset(
        f"{name}__{lookup}" for name in list_filter for lookup in ("exact", "isnull")
    )
    search_fields = ("name", "type")
    fields = (*DEFINITION, "paused", *TICKS)

    class Media:
        css = {"all": ("django_jobqueue/jobs.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave the payload unread until a form asks for it."""
        rows: QuerySet[Any] = super().get_queryset(request).defer("payload")
        return rows

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show a stored payload to those who may view payloads; masked where it is not edited."""
        names = list(self.fields)
        if obj is None:
            return names
        if not may_view_payloads(request):
            return [name for name in names if name != "payload"]
        edited = (
            self.has_change_permission(request, obj)
            and not obj.declared_in_code
            and not carried_of(obj, whole=EDITABLE).is_text
        )
        return [MASKED_PAYLOAD if name == "payload" and not edited else name for name in names]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Leave the definition of a declared schedule to the code that declares it."""
        declared = obj is not None and obj.declared_in_code
        return (*DEFINITION, *TICKS, MASKED_PAYLOAD) if declared else (*TICKS, MASKED_PAYLOAD)

    @admin.display(description=_("payload"))
    def masked_payload(self, schedule: Schedule) -> SafeString:
        """The payload without its secrets."""
        shown = json_text(carried_of(schedule, whole=WHOLE))
        return format_html("<pre>{}</pre>{}", shown.text, shown.note)

    @explains_timeouts
    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what was done in the admin."""
        return super().history_view(request, object_id, extra_context)

    @admin.display(description=_("type"), ordering="type")
    def type_and_note(self, row: Schedule) -> str | SafeString:
        """The type, and whether this process knows no handler of it."""
        if registry.get(row.type) is not None:
            return row.type
        note = gettext("no handler known here")
        return format_html('{}<br><span class="jobqueue-note">{}</span>', row.type, note)

    def save_model(
        self,
        request: HttpRequest,
        obj: Schedule,
        form: Any,
        change: bool,  # noqa: FBT001 (Django's hook)
    ) -> None:
        """Save, and warn of a type that no handler here knows; another deployment may know it."""
        super().save_model(request, obj, form, change)
        if registry.get(obj.type) is None:
            text = gettext(
                "No handler of the type %(type)s is known here. Unless another part of the site "
                "knows it, the jobs of this schedule wait for ever."
            )
            messages.warning(request, text % {"type": obj.type})


def carried_of(schedule: Schedule, *, whole: int) -> Carried:
    """Return the payload that is stored of a schedule; `whole` as for `carried_by`."""
    rows = Schedule.objects.using(schedule._state.db).filter(pk=schedule.pk)  # noqa: SLF001
    return carried_by(rows, "payload", whole=whole).get("payload", Carried(None))
