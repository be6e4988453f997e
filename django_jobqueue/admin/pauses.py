"""Pauses of queues and types in the admin: what is paused, and how to pause and resume."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, DELETION
from django.core.exceptions import PermissionDenied
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..models import Job, QueueControl
from ..states import PauseKind
from . import audit
from .access import may
from .actions import CONFIRMED
from .addresses import list_url, render, url_of
from .readonly import ReadOnlyAdmin
from .timeouts import explains_timeouts

MOST_SHOWN = 1_000

QUEUE_LENGTH = 100
"""The longest name of a queue; that of a type may be as long as the column."""

# A whole sentence for each kind: in other languages they differ in more than one word.
PAUSE = {
    PauseKind.QUEUE: gettext_lazy("Pause the queue %(name)s?"),
    PauseKind.TYPE: gettext_lazy("Pause the type %(name)s?"),
}
PAUSED = {
    PauseKind.QUEUE: gettext_lazy("The queue %(name)s is paused."),
    PauseKind.TYPE: gettext_lazy("The type %(name)s is paused."),
}
PAUSED_BEFORE = {
    PauseKind.QUEUE: gettext_lazy("The queue %(name)s was paused already."),
    PauseKind.TYPE: gettext_lazy("The type %(name)s was paused already."),
}
RESUME = {
    PauseKind.QUEUE: gettext_lazy("Resume the queue %(name)s?"),
    PauseKind.TYPE: gettext_lazy("Resume the type %(name)s?"),
}
RESUMED = {
    PauseKind.QUEUE: gettext_lazy("The queue %(name)s is no longer paused."),
    PauseKind.TYPE: gettext_lazy("The type %(name)s is no longer paused."),
}


class PauseForm(forms.Form):
    """What to pause, and why. A name may be of a queue or a type that has no jobs yet."""

    kind = forms.ChoiceField(label=gettext_lazy("What"), choices=PauseKind.choices)
    # Whitespace is part of a name, as it is for an enqueue.
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=QueueControl._meta.get_field("name").max_length,
        strip=False,
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=QueueControl._meta.get_field("reason").max_length,
        required=False,
        help_text=gettext_lazy("For those who wonder later why nothing runs."),
    )

    def clean(self) -> dict[str, Any]:
        """Refuse a name that no queue or no type can have."""
        cleaned = super().clean() or self.cleaned_data
        name = cleaned.get("name")
        if name is not None and not name.strip():
            self.add_error("name", _("A name has at least one visible character."))
        if cleaned.get("kind") == PauseKind.QUEUE and len(name or "") > QUEUE_LENGTH:
            message = _("The name of a queue has at most %(limit)s characters.")
            self.add_error("name", message % {"limit": QUEUE_LENGTH})
        return cleaned


@admin.register(QueueControl)
class QueueControlAdmin(ReadOnlyAdmin):
    """What is paused. Pausing and resuming are asked for, confirmed and made by POST."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Those who may pause queues may add pauses."""
        return may(request, "pause_queue")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Those who may pause queues see what is paused."""
        return super().has_view_permission(request, obj) or may(request, "pause_queue")

    def get_urls(self) -> list[URLPattern]:
        """Add the address that ends a pause."""
        view = self.admin_site.admin_view(self.resume_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_resume"
        return [path("<int:control_id>/resume/", view, name=name), *super().get_urls()]

    @explains_timeouts
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List the pauses, each with a button that ends it."""
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied
        pauses = self.get_queryset(request).order_by("kind", "name")[:MOST_SHOWN]
        allowed = may(request, "pause_queue")
        rows = [(pause, url_of(self, "resume", pause.pk) if allowed else "") for pause in pauses]
        context = {
            "title": _("Paused queues and types"),
            "rows": rows,
            "may_pause": allowed,
            **(extra_context or {}),
        }
        return self._page(request, "list", context)

    @explains_timeouts
    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask what to pause, ask whether to, and pause it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            asked = {name: request.GET.get(name, "") for name in ("kind", "name", "reason")}
            return self._form_page(request, PauseForm(initial=asked))
        form = PauseForm(request.POST)
        if not form.is_valid():
            return self._form_page(request, form)
        pause = form.cleaned_data
        if CONFIRMED not in request.POST:
            return self._ask(
                request,
                said(PAUSE, pause["kind"], pause["name"]),
                _("Workers claim no more of its jobs until it is resumed. Running jobs finish."),
                list(pause.items()),
            )
        created = Job.objects.pause(pause["kind"], pause["name"], reason=pause["reason"])
        done = said(PAUSED if created else PAUSED_BEFORE, pause["kind"], pause["name"])
        self.message_user(request, done, messages.SUCCESS if created else messages.WARNING)
        if created:
            self._note(request, ADDITION, pause["kind"], pause["name"], pause["reason"])
        return HttpResponseRedirect(list_url(self))

    def resume_view(self, request: HttpRequest, control_id: int) -> HttpResponseBase:
        """Ask whether to resume what a row pauses, and resume it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may(request, "pause_queue"):
            raise PermissionDenied
        pause = self.get_queryset(request).filter(pk=control_id).first()
        if pause is None:
            self.message_user(request, _("That pause has ended already."), messages.WARNING)
        elif CONFIRMED not in request.POST:
            return self._ask(
                request,
                said(RESUME, pause.kind, pause.name),
                _("Workers claim its jobs again at once."),
                [],
            )
        else:
            resumed = Job.objects.resume(pause.kind, pause.name)
            self.message_user(request, said(RESUMED, pause.kind, pause.name), messages.SUCCESS)
            if resumed:
                self._note(request, DELETION, pause.kind, pause.name, pause.reason)
        return HttpResponseRedirect(list_url(self))

    def _form_page(self, request: HttpRequest, form: PauseForm) -> HttpResponse:
        return self._page(request, "form", {"title": _("Pause a queue or a type"), "form": form})

    def _ask(
        self, request: HttpRequest, question: str, effect: str, hidden: list[tuple[str, str]]
    ) -> HttpResponse:
        context = {
            "title": question,
            "effect": effect,
            "hidden": hidden,
            "confirmed": CONFIRMED,
        }
        return self._page(request, "confirm", context)

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
        context = {"add_url": url_of(self, "add"), **context}
        return render(self, request, f"queuecontrol/{name}", context)

    def _note(self, request: HttpRequest, flag: int, kind: str, name: str, text: str) -> None:
        audit.note(request, self.model, flag, f"{PauseKind(kind).label} {name}", text)


def said(sentences: Mapping[PauseKind, Any], kind: str, name: str) -> str:
    """Return the sentence for a kind, about what is called that."""
    return str(sentences[PauseKind(kind)] % {"name": name})
