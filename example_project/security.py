"""The Content-Security-Policy of every page."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

POLICY = "; ".join(
    [
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)

GetResponse = Callable[[HttpRequest], HttpResponse]


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Allow scripts, styles and images of this site only: no page has any of them inline."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        # Django's debug pages style themselves inline.
        if not (settings.DEBUG and response.status_code >= 400):
            response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return middleware
