"""The list of jobs: its columns, filters, search and pages."""

from functools import partial
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from ..managers import JobQuerySet
from .access import may_view_payloads
from .choices import Names
from .columns import JobColumns
from .filters import ActivityFilter, QueueFilter, StateFilter, TypeFilter
from .paging import CappedPaginator, JobChangeList
from .readonly import ReadOnlyAdmin
from .search import found_by
from .timeouts import explains_timeouts

PER_PAGE = 100


class JobList(JobColumns, ReadOnlyAdmin):
    """The half of the jobs' admin that lists them.

    It opens in eight queries at most, none of which reads the whole table.
    """

    asked_by_filters = frozenset(
        str(each.parameter_name) for each in (StateFilter, TypeFilter, QueueFilter, ActivityFilter)
    )
    search_fields = ("id",)  # Shows the box; `get_search_results` decides what is asked.
    search_help_text = _(
        "The id of a job or its beginning, or its subject: type:id, or the id alone."
    )
    ordering = ("-id",)
    sortable_by = ("age",)
    list_display_links = ("state", "short_id")
    list_per_page = PER_PAGE
    list_max_show_all = PER_PAGE
    paginator = CappedPaginator

    class Media:
        css = {"all": ("django_jobqueue/jobs.css",)}

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Show the error's first line to those who may view payloads, its class to others."""
        error = "error_line" if may_view_payloads(request) else "error_class"
        return (
            *("state", "type_and_label", "queue_name", "priority_number"),
            *("attempts_of_budget", "age", "duration", error, "short_id"),
        )

    def get_list_filter(self, request: HttpRequest) -> tuple[Any, ...]:
        """Return the filters; those by name share what they know of this request's names."""
        names = Names(self.get_queryset(request))
        by_name = (partial(TypeFilter, names), partial(QueueFilter, names))
        return (StateFilter, ActivityFilter, *by_name)

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[JobQuerySet, bool]:
        """Return the jobs that the term names; no search without one."""
        found = found_by(queryset, search_term) if search_term.strip() else queryset
        return found, False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the pages that are never counted in full."""
        return JobChangeList

    @explains_timeouts
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list."""
        return super().changelist_view(request, extra_context)
