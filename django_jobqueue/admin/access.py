"""Who may see what."""

from django.http import HttpRequest

from ..models import Job


def may_view_payloads(request: HttpRequest) -> bool:
    """Whether the user may see payloads, results, tracebacks and the text of errors."""
    return may(request, "view_job_payload")


def may(request: HttpRequest, codename: str) -> bool:
    """Whether the user has a permission of the queue."""
    return request.user.has_perm(f"{Job._meta.app_label}.{codename}")
