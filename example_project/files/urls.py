"""Addresses of the app's pages."""

from django.urls import path

from . import views

app_name = "files"
urlpatterns = [
    path("", views.documents, name="documents"),
    path("documents/<int:pk>/", views.document, name="document"),
    path("documents/<int:pk>/process/", views.process_again, name="process"),
    path("documents/<int:pk>/file/", views.download, name="download"),
    path("documents/<int:pk>/thumbnail.png", views.thumbnail, name="thumbnail"),
    path("jobs/", views.jobs, name="jobs"),
]
