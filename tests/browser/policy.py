"""The served sites: their settings, what their pages may load, and what they remember."""

from django.contrib.contenttypes.models import ContentType

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
"""As strict as one can be: nothing inline, nothing from elsewhere."""

FOR_UNFOLD = POLICY | {
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
}
"""What django-unfold needs: Alpine evaluates attributes, and the colours are written inline."""

SERVED = (
    "ALLOWED_HOSTS = ['127.0.0.1']",
    "INSTALLED_APPS = [*INSTALLED_APPS, 'django.contrib.staticfiles', 'tests.browser']",
    "MIDDLEWARE = ['tests.browser.policy.forgetful', *MIDDLEWARE]",
)
STRICT = ("MIDDLEWARE = ['tests.browser.policy.strict', *MIDDLEWARE]",)
UNFOLD = (
    "INSTALLED_APPS = ['unfold', *INSTALLED_APPS]",
    "MIDDLEWARE = ['tests.browser.policy.for_unfold', *MIDDLEWARE]",
)
"""Lines of settings."""


def strict(get_response):
    return under(POLICY, get_response)


def for_unfold(get_response):
    return under(FOR_UNFOLD, get_response)


def forgetful(get_response):
    """Let one server see many tests: each flushes the tables, and content types get new ids."""

    def middleware(request):
        ContentType.objects.clear_cache()
        return get_response(request)

    return middleware


def under(policy, get_response):
    header = "; ".join(f"{name} {sources}" for name, sources in policy.items())

    def middleware(request):
        response = get_response(request)
        response.headers["Content-Security-Policy"] = header
        return response

    return middleware
