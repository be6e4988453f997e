"""Addresses of the app's pages; without the Tasks framework there is one, which says so."""

from django.conf import settings
from django.urls import path
from django.views.generic import TemplateView

from .apps import MISSING, REMEDY

app_name = "texts"

if settings.TASKS:
    from . import views

    urlpatterns = [
        path("", views.form, name="form"),
        path("<uuid:pk>/", views.result, name="result"),
    ]
else:
    missing = TemplateView.as_view(
        template_name="texts/missing.html", extra_context={"missing": MISSING, "remedy": REMEDY}
    )
    urlpatterns = [path("", missing, name="form")]
