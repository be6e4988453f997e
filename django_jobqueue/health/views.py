"""The probes over HTTP: 200 or 503 and a little JSON, for load balancers and monitors.

Codes and numbers only. They still tell how busy a site is, so protect the addresses.
"""

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from ..exceptions import InvalidSettings
from .probes import PROBES, Thresholds
from .report import Problem, Report

OK = 200
UNAVAILABLE = 503


@transaction.non_atomic_requests  # Its transaction would need the database that is asked about.
@require_safe
def probe(_request: HttpRequest, name: str) -> HttpResponse:
    """Answer one probe."""
    try:
        report = PROBES[name](Thresholds.from_settings(), None)
    except InvalidSettings as error:
        report = Report(name, (Problem("settings", str(error)),))
    return JsonResponse(
        report.public(),
        status=OK if report.healthy else UNAVAILABLE,
        headers={"Cache-Control": "no-store"},
    )
