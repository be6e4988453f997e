"""Who may see what."""

from django.http import HttpRequest

from ..models import Job


def may_view_payloads(request: HttpRequest) -> bool:
    """Whether the user may see payloads, results, tracebacks and the text of errors."""
    app_label = Job._meta.app_label
    return request.user.has_perm(f"{app_label}.view_job_payload")
