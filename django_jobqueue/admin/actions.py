"""Acting on jobs in the admin, on chosen ones, on all that match, and on one.

Every action is asked for by POST, answered with a page that says what it would do, and done by a
second POST to the same address, so that the filter stays the one that was shown. Each time its
permission is checked. What changed meanwhile the transitions find out: they assert again what
they need.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from ..managers import JobQuerySet
from ..models import Job
from ..states import COUNT_LIMIT, BulkReport
from . import audit
from .action_menu import ActionMenu
from .addresses import gone, list_url, render, url_of
from .operations import (
    CANCEL,
    DELETE,
    OPERATIONS,
    REMAINING,
    RESET,
    RETRY,
    Operation,
    counted,
    exact_count,
    skipped_lines,
)
from .readonly import ReadOnlyAdmin
from .timeouts import explains_timeouts

CONFIRMED = "confirmed"
"""The field that only the page of confirmation sends: how many jobs it said it would change."""

SEVERAL = ngettext_lazy("%(count)s job", "%(count)s jobs", "number")


class JobActions(ReadOnlyAdmin):
    """The half of the jobs' admin that acts."""

    action_form = ActionMenu
    actions: Sequence[str] = ("retry_jobs", "cancel_jobs", "reset_jobs", "delete_jobs")

    @admin.action(description=RETRY.menu, permissions=[RETRY.permission])
    def retry_jobs(self, request: HttpRequest, jobs: JobQuerySet) -> HttpResponse | None:
        """Make failed or cancelled jobs wait again."""
        return self._act(request, RETRY, jobs)

    @admin.action(description=CANCEL.menu, permissions=[CANCEL.permission])
    def cancel_jobs(self, request: HttpRequest, jobs: JobQuerySet) -> HttpResponse | None:
        """Cancel pending jobs."""
        return self._act(request, CANCEL, jobs)

    @admin.action(description=RESET.menu, permissions=[RESET.permission])
    def reset_jobs(self, request: HttpRequest, jobs: JobQuerySet) -> HttpResponse | None:
        """End the dead claims of stuck jobs."""
        return self._act(request, RESET, jobs)

    # Not Django's `delete_selected`: that would neither count in the rollup nor spare running jobs.
    @admin.action(description=DELETE.menu, permissions=[DELETE.permission])
    def delete_jobs(self, request: HttpRequest, jobs: JobQuerySet) -> HttpResponse | None:
        """Delete jobs that are not running."""
        return self._act(request, DELETE, jobs)

    def has_retry_job_permission(self, request: HttpRequest) -> bool:
        """Whether the user is offered to retry jobs."""
        return RETRY.permitted(request)

    def has_cancel_job_permission(self, request: HttpRequest) -> bool:
        """Whether the user is offered to cancel jobs."""
        return CANCEL.permitted(request)

    def has_reset_stuck_jobs_permission(self, request: HttpRequest) -> bool:
        """Whether the user is offered to reset stuck jobs."""
        return RESET.permitted(request)

    def has_delete_job_permission(self, request: HttpRequest) -> bool:
        """Whether the user is offered to delete jobs."""
        return DELETE.permitted(request)

    def response_action(  # type: ignore[override]
        self, request: HttpRequest, queryset: JobQuerySet, **where: Any
    ) -> HttpResponse | None:
        """Run the chosen action; refuse ids that are none. `where`: since Django 6.1."""
        try:
            return super().response_action(request, queryset, **where)
        except ValidationError as error:
            raise BadRequest("A chosen id is no id of a job; choose jobs in the list.") from error

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of the actions on one job."""
        view = self.admin_site.admin_view(self.action_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_action"
        return [path("<uuid:job_id>/actions/<str:name>/", view, name=name), *super().get_urls()]

    @explains_timeouts
    def action_view(self, request: HttpRequest, job_id: UUID, name: str) -> HttpResponseBase:
        """Do one thing to one job, once that is confirmed."""
        operation = next((each for each in OPERATIONS if each.name == name), None)
        if operation is None:
            raise Http404(f"There is no action {name!r} on jobs.")
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        jobs: Any = self.get_queryset(request)
        job = jobs.filter(pk=job_id).first()
        if job is None:
            return gone(self, request, job_id)
        page = self._act(request, operation, jobs.filter(pk=job_id), job)
        if page is not None:
            return page
        exists = jobs.filter(pk=job_id).exists()
        return HttpResponseRedirect(url_of(self, "change", job_id) if exists else list_url(self))

    def _act(
        self, request: HttpRequest, operation: Operation, jobs: JobQuerySet, job: Job | None = None
    ) -> HttpResponse | None:
        """Do it once it is confirmed; return the page that asks, None when there is nothing to."""
        if not operation.permitted(request):
            raise PermissionDenied
        if CONFIRMED in request.POST:
            report = operation.run(jobs, limit=confirmed_count(request))
            self._log(request, operation, report, job)
            self._tell(request, operation, report)
            if not report.remaining or report.error is not None or job is not None:
                return None
        preview = operation.preview(jobs)
        if preview.remaining:
            return self._ask(request, operation, preview, job)
        if CONFIRMED not in request.POST:
            self.message_user(request, operation.nothing, messages.WARNING)
        return None

    def _ask(
        self, request: HttpRequest, operation: Operation, preview: BulkReport, job: Job | None
    ) -> HttpResponse:
        """Return the page that says what would be done and asks whether to."""
        context = {
            "title": counted(operation.question, preview.remaining),
            "operation": operation,
            "job": job,
            "skipped": skipped_lines(preview),
            "is_too_many": preview.remaining >= COUNT_LIMIT,
            "hidden": [] if job else chosen_in(request),
            "confirmed": CONFIRMED,
            "count": preview.remaining,
            "back_url": url_of(self, "change", job.pk) if job else request.get_full_path(),
        }
        return render(self, request, "job/confirm_action", context)

    def _tell(self, request: HttpRequest, operation: Operation, report: BulkReport) -> None:
        level = messages.SUCCESS if report.done else messages.WARNING
        self.message_user(request, exact_count(operation.done, report.done), level)
        if report.skipped:
            skipped = _("Skipped: %(reasons)s.") % {"reasons": "; ".join(skipped_lines(report))}
            self.message_user(request, skipped, messages.WARNING)
        if report.remaining:
            self.message_user(request, counted(REMAINING, report.remaining), messages.INFO)
        if report.error is not None:
            text = _("The database ended this early. What is said to be done is done.")
            self.message_user(request, text, messages.ERROR)

    def _log(
        self, request: HttpRequest, operation: Operation, report: BulkReport, job: Job | None
    ) -> None:
        """Note who did what: on the job when it was one, else one entry for all of them."""
        if not report.done:
            return
        asked = request.META.get("QUERY_STRING", "")
        text = exact_count(operation.done, report.done)
        audit.note(
            request,
            self.model,
            operation.flag,
            exact_count(SEVERAL, report.done) if job is None else str(job),
            f"{text} ({asked})" if asked and job is None else text,
            object_id=None if job is None else job.pk,
        )


def confirmed_count(request: HttpRequest) -> int:
    """Return how many jobs the user agreed to: others that match by now are asked about again."""
    try:
        count = int(request.POST[CONFIRMED])
    except ValueError:
        count = 0
    if count < 1:
        raise BadRequest(f"{CONFIRMED} is no number of jobs; use the page that asks.")
    return min(count, COUNT_LIMIT)


def chosen_in(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the fields that choose the same jobs, and the same action, once more."""
    chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
    across = request.POST.get("select_across") == "1"
    # Django wants one chosen row even when the filter chooses all of them.
    ids = chosen[:1] if across else chosen
    return [
        ("action", action_in(request)),
        ("select_across", "1" if across else "0"),
        *((ACTION_CHECKBOX_NAME, job_id) for job_id in ids),
    ]


def action_in(request: HttpRequest) -> str:
    """Return the name of the action, as Django finds it: a list may have several menus."""
    names = request.POST.getlist("action")
    try:
        return names[int(request.POST.get("index", 0))]
    except (ValueError, IndexError):
        return names[-1]
