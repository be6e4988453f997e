"""Addresses of the health probes: `path("jobqueue/", include("django_jobqueue.urls"))`."""

from django.urls import path

from .health.probes import PROBES
from .health.views import probe

app_name = "django_jobqueue"

urlpatterns = [path(f"{name}/", probe, {"name": name}, name=f"health-{name}") for name in PROBES]
