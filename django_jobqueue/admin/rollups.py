"""The totals of purged jobs in the admin."""

from datetime import timedelta

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from ..models import JobStatsRollup
from .columns import EMPTY
from .durations import short_duration
from .readonly import ReadOnlyAdmin


@admin.register(JobStatsRollup)
class JobStatsRollupAdmin(ReadOnlyAdmin):
    """How many jobs of each type were purged, how they had ended and how long they took."""

    list_display = (
        *("type", "succeeded_count", "failed_count", "cancelled_count"),
        "mean_duration",
    )
    search_fields = ("type",)
    ordering = ("type",)

    @admin.display(description=_("mean duration"))
    def mean_duration(self, totals: JobStatsRollup) -> str:
        """How long one took on average; nothing without a sample."""
        if not totals.duration_samples:
            return EMPTY
        return short_duration(timedelta(seconds=totals.duration_sum / totals.duration_samples))
