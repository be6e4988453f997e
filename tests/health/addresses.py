"""Addresses of a site that includes the probes."""

from django.urls import include, path

urlpatterns = [path("health/", include("django_jobqueue.urls"))]
