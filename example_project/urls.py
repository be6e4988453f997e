"""Addresses of the site."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("texts/", include("example_project.texts.urls")),
    path("", include("example_project.files.urls")),
]
