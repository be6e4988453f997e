"""One job in the admin: all there is to know about it, in groups, and nothing to edit."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from .. import registry
from ..carried import Carried, carried_by
from ..managers import JobQuerySet
from ..models import QueueControl
from ..states import JobStatus, PauseKind, error_class_of
from ..wording import digits, exact
from .access import may, may_view_payloads
from .addresses import gone, render, url_of
from .carried import WHOLE, error_text, json_text
from .columns import JobColumns
from .elapsed import elapsed
from .operations import OPERATIONS
from .readonly import ReadOnlyAdmin
from .rows import as_rows, duration_of
from .subjects import SubjectLinks
from .timeline import timeline_of
from .timeouts import explains_timeouts

if TYPE_CHECKING:
    from .rows import Row

CARRIED = ("payload", "result")
COLUMNS = JobColumns()
TRACE_PARTS = 4
"""Version, trace id, parent id and flags: a W3C traceparent."""


class Group(NamedTuple):
    """Some facts about a job under one heading."""

    title: str
    facts: list[tuple[str, Any]]


class JobDetail(ReadOnlyAdmin):
    """The half of the jobs' admin that shows one of them."""

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return a job without what it carries, which may be too large for the page to read."""
        return row_of(cast("JobQuerySet", self.get_queryset(request)), object_id)

    @explains_timeouts
    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a job. There is no form: what can be done has an address of its own."""
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied
        jobs: Any = self.get_queryset(request)
        row = row_of(jobs, object_id)
        if row is None:
            return gone(self, request, object_id)
        with_texts = may_view_payloads(request)
        context = {
            "title": _("Job of the type %(type)s") % {"type": row.type},
            "job": row,
            "state": COLUMNS.state(row),
            "groups": [
                Group(_("State"), self._state(request, row)),
                Group(_("What it is about"), self._about(request, row)),
                Group(_("Times"), times_of(row)),
                Group(_("Claim"), claim_of(row)),
            ],
            "error_class": error_class_of(row.last_error),
            "error": error_text(row.last_error) if with_texts and row.last_error else None,
            "timeline": timeline_of(row, jobs.db, with_texts=with_texts),
            "carried": shown_of(jobs, row) if with_texts else [],
            "may_view_payloads": with_texts,
            "operations": self._operations(request, jobs.filter(pk=row.pk)),
            **(extra_context or {}),
        }
        return render(self, request, "job/detail", context)

    def _state(self, request: HttpRequest, row: "Row") -> list[tuple[str, Any]]:
        """Return what state the job is in, whether it is held up, and how long it ran."""
        handler = registry.get(row.type)
        label = _("no handler known here") if handler is None else handler.label
        places = {PauseKind.TYPE: row.type, PauseKind.QUEUE: row.queue}
        either = Q(*(Q(kind=kind, name=name) for kind, name in places.items()), _connector=Q.OR)
        paused = {pause.kind: pause for pause in QueueControl.objects.filter(either)}
        may_pause = may(request, "pause_queue")
        pauses = {
            kind: pause_links(kind, name, paused.get(kind), self.admin_site.name, offered=may_pause)
            for kind, name in places.items()
        }
        duration = duration_of(row)
        type_and_label = f"{row.type} ({label})" if label else row.type
        return present(
            (_("type"), format_html("{} {}", type_and_label, pauses[PauseKind.TYPE])),
            (_("queue"), format_html("{} {}", row.queue, pauses[PauseKind.QUEUE])),
            (_("priority"), row.priority),
            (_("attempts"), COLUMNS.attempts_of_budget(row)),
            (_("duration"), None if duration is None else elapsed(duration)),
            (_("rate limit hits"), row.rate_limit_hits or None),
        )

    def _about(self, request: HttpRequest, row: "Row") -> list[tuple[str, Any]]:
        subject: Any = None
        if row.subject_type is not None:
            subject = f"{row.subject_type} {row.subject_id}"
            url = SubjectLinks(self.admin_site, request).url(row.subject_type, row.subject_id)
            if url is not None:
                subject = format_html('<a href="{}">{}</a>', url, subject)
        return present(
            (_("subject"), subject),
            (_("reason"), row.reason),
            (_("dedup key"), row.dedup_key),
            (_("organisation"), row.org_id),
            (_("trace id"), identifier(trace_id_of(row.trace_context))),
            (_("id"), identifier(row.pk)),
        )

    def _operations(self, request: HttpRequest, job: JobQuerySet) -> list[tuple[str, Any]]:
        """Return the actions that apply to the job and that the user may do, with addresses."""
        job_id = job.values_list("pk", flat=True).first()
        return [
            (url_of(self, "action", job_id, each.name), each)
            for each in OPERATIONS
            if each.permitted(request) and each.eligible(job).exists()
        ]


def row_of(jobs: JobQuerySet, object_id: str) -> "Row | None":
    """Return the job of an id as the page shows it, without what it carries."""
    rows: Any = as_rows(jobs).defer(None).defer(*CARRIED)
    try:
        row: Row | None = rows.filter(pk=object_id).first()
    except ValidationError:
        return None
    return row


def pause_links(
    kind: PauseKind, name: str, pause: QueueControl | None, site: str, *, offered: bool
) -> SafeString | str:
    """Return whether a queue or a type is paused, and the link to change that if it is offered."""
    page = "admin:django_jobqueue_queuecontrol"
    if pause is None:
        if not offered:
            return ""
        query = urlencode({"kind": kind.value, "name": name})
        url = f"{reverse(f'{page}_add', current_app=site)}?{query}"
        text = _("Pause this queue") if kind is PauseKind.QUEUE else _("Pause this type")
        return format_html('<a class="jobqueue-note" href="{}">{}</a>', url, text)
    why = _("paused: %(reason)s") % {"reason": pause.reason} if pause.reason else _("paused")
    shown = format_html('<strong class="jobqueue-stuck">{}</strong>', why)
    if not offered:
        return shown
    url = reverse(f"{page}_changelist", current_app=site)
    text = _("See what is paused")
    return format_html('{} <a class="jobqueue-note" href="{}">{}</a>', shown, url, text)


def times_of(row: "Row") -> list[tuple[str, Any]]:
    """Return the moments of the job's life, each with how long ago or ahead it is."""
    return present(
        (_("created"), instant(row.created_at, row)),
        (_("ready"), instant(row.ready_at, row)),
        (_("scheduled for"), instant(row.scheduled_for, row)),
        (_("rate limited"), instant(row.rate_limited_at, row)),
        (_("started"), instant(row.started_at, row)),
        (_("finished"), instant(row.finished_at, row)),
    )


def claim_of(row: "Row") -> list[tuple[str, Any]]:
    """Return who runs, or ran, the job."""
    lease = None if row.lease_seconds is None else digits(row.lease_seconds)
    return present(
        (_("executor"), row.get_executor_display()),
        (_("worker"), row.worker),
        (_("node"), identifier(row.node_id)),
        (_("claim token"), identifier(row.claim_token)),
        (_("lease expires"), instant(row.lease_expires_at, row)),
        (_("lease in seconds"), lease),
    )


def shown_of(jobs: JobQuerySet, row: "Row") -> list[tuple[str, Any]]:
    """Read what the job carries: only for those who may see it."""
    found = carried_by(jobs.filter(pk=row.pk), *CARRIED, whole=WHOLE)
    payload, result = (found.get(name, Carried(None)) for name in CARRIED)
    shown = [(_("Payload"), json_text(payload))]
    if row.status == JobStatus.SUCCEEDED or result.value is not None:
        shown.append((_("Result"), json_text(result)))
    return shown


def present(*facts: tuple[str, Any]) -> list[tuple[str, Any]]:
    """Return the facts that there are."""
    return [(label, value) for label, value in facts if value not in {None, ""}]


def identifier(value: object) -> SafeString | None:
    """Return an id that looks short and is whole when it is selected."""
    return None if value is None else format_html('<code class="jobqueue-key">{}</code>', value)


def instant(moment: datetime | None, row: "Row") -> SafeString | None:
    """Return a moment in the site's time zone, and how far it is from the reading of the row."""
    if moment is None:
        return None
    distance = row.read_at - moment
    text = _("%(duration)s ago") if distance.total_seconds() >= 0 else _("in %(duration)s")
    return format_html(
        '<time datetime="{}">{}</time> <span class="jobqueue-note">{}</span>',
        moment.isoformat(),
        exact(moment),
        text % {"duration": elapsed(abs(distance))},
    )


def trace_id_of(traceparent: str | None) -> str | None:
    """Return the trace id of a W3C traceparent, if it is one."""
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == TRACE_PARTS else None
