"""The insights page: what the queue does, did, and when the backlog will be gone."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.apps.registry import Apps
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .. import insights
from ..exceptions import shown
from ..models import Job
from .access import may_view_payloads
from .insights_figures import figures_of
from .insights_sentences import verdict_of
from .readonly import ReadOnlyAdmin
from .timeouts import explains_timeouts

APP = Job._meta.app_label

WINDOWS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": insights.DEFAULT_WINDOW,
    "30d": timedelta(days=30),
    "90d": insights.LONGEST_WINDOW,
}
"""What `?window=` may say."""

DEFAULT = "7d"

WINDOW_NAMES = {
    "1h": gettext_lazy("1 hour"),
    "24h": gettext_lazy("24 hours"),
    "7d": gettext_lazy("7 days"),
    "30d": gettext_lazy("30 days"),
    "90d": gettext_lazy("90 days"),
}


class Insights(models.Model):
    """A page that the admin lists as if it were a model. There is no table, and no permission."""

    class Meta:
        # A registry of its own: migrations and content types never hear of it.
        apps = Apps()
        app_label = APP
        managed = False
        default_permissions = ()
        verbose_name = gettext_lazy("insights")
        verbose_name_plural = gettext_lazy("insights")

    def __str__(self) -> str:
        return "insights"


@admin.register(Insights)
class InsightsAdmin(ReadOnlyAdmin):
    """Shows the page to those who may view jobs."""

    def get_urls(self) -> list[URLPattern]:
        """Return the page under its own name, and under the one that the admin's index links."""
        page = self.admin_site.admin_view(self.insights_view)
        return [
            path("", page, name=f"{APP}_insights"),
            path("", page, name=f"{APP}_insights_changelist"),
        ]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may view jobs may view what they add up to."""
        return request.user.has_perm(f"{APP}.view_job")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """The same: there are no permissions of this page's own."""
        return self.has_view_permission(request)

    @explains_timeouts
    def insights_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page over the window that the address asks for."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = request.GET.get("window", DEFAULT)
        chosen = asked if asked in WINDOWS else DEFAULT
        found = insights.overview(WINDOWS[chosen], messages=may_view_payloads(request))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Insights"),
            "opts": Job._meta,
            "problem": None if asked in WINDOWS else refusal(asked),
            "windows": [(key, WINDOW_NAMES[key], key == chosen) for key in WINDOWS],
            "window_name": WINDOW_NAMES[chosen],
            "overview": found,
            "verdict": verdict_of(found),
            **figures_of(found),
        }
        template = "admin/django_jobqueue/insights.html"
        status = 200 if asked in WINDOWS else 400
        return TemplateResponse(request, template, context, status=status)


def refusal(asked: str) -> str:
    """Return what is wrong with a window that is not offered."""
    return _("The window is %(asked)s; expected one of %(offered)s. Shown is %(default)s.") % {
        "asked": shown(asked),
        "offered": ", ".join(WINDOWS),
        "default": DEFAULT,
    }
