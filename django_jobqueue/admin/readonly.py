"""What every admin page of the queue shares: nothing is editable by form."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from .lookups import OwnFiltersOnly
from .timeouts import explains_timeouts


class ReadOnlyAdmin(OwnFiltersOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows and changes none."""

    actions: Sequence[str] | None = None
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    @explains_timeouts
    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what was done in the admin."""
        return super().history_view(request, object_id, extra_context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds rows here: jobs are enqueued."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits rows: state changes through the manager's transitions only."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes rows by form."""
        return False
