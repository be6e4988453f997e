"""Where the pages of a model's admin are, in the admin site that serves the request."""

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


def url_of(page: "ModelAdmin[Any]", view: str, *args: object) -> str:
    """Return the address of a view of the model's admin, such as "changelist"."""
    name = f"admin:{page.opts.app_label}_{page.opts.model_name}_{view}"
    return reverse(name, args=args, current_app=page.admin_site.name)


def list_url(page: "ModelAdmin[Any]") -> str:
    """Return the address of the list."""
    return url_of(page, "changelist")


def gone(page: "ModelAdmin[Any]", request: HttpRequest, object_id: object) -> HttpResponse:
    """Send the user to the list, saying that there is no such job."""
    text = _("There is no job with the id %(id)s. It may have been deleted.") % {"id": object_id}
    page.message_user(request, text, messages.WARNING)
    return HttpResponseRedirect(list_url(page))


def render(
    page: "ModelAdmin[Any]", request: HttpRequest, template: str, context: dict[str, Any]
) -> HttpResponse:
    """Return one of the queue's own pages in the site's admin."""
    common = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "list_url": list_url(page),
    }
    request.current_app = page.admin_site.name
    name = f"admin/django_jobqueue/{template}.html"
    return TemplateResponse(request, name, {**common, **context})
