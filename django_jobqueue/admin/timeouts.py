"""A page that the database has no more time for says so, and what helps."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from ..database.errors import is_cancelled, is_lock_timeout

Params = ParamSpec("Params")
Page = TypeVar("Page")

Answer = TypeVar("Answer", bound=HttpResponseBase)

View = Callable[Concatenate[Page, HttpRequest, Params], Answer]


def explains_timeouts(
    view: "View[Page, Params, Answer]",
) -> "View[Page, Params, Answer | HttpResponse]":
    """Make a view of a model's admin answer 503 with advice when the database cancels its query.

    Because of its own time, or of the time that it waited for a lock.

    The view must have read all it shows when it returns: what a template reads comes too late. Any
    other error of the database is raised as it is.
    """

    @wraps(view)
    def explaining(
        page: Page, request: HttpRequest, /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Answer | HttpResponse:
        try:
            return view(page, request, *args, **kwargs)
        except OperationalError as error:
            if not (is_cancelled(error) or is_lock_timeout(error)):
                raise
            return took_too_long(page, request)

    return explaining


def took_too_long(page: Any, request: HttpRequest) -> HttpResponse:
    """Return the page that says so: status 503, with a link to the view without its filters."""
    context = {
        **page.admin_site.each_context(request),
        "title": _("This view took too long"),
        "opts": page.opts,
        "is_filtered": bool(request.GET),
    }
    request.current_app = page.admin_site.name
    template = "admin/django_jobqueue/took_too_long.html"
    return TemplateResponse(request, template, context, status=503)
