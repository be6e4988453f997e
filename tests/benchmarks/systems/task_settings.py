"""Django settings for the two peers that are backends of Django's tasks."""

import os
from importlib.util import find_spec

from tests import databases

SECRET_KEY = "only for benchmarks"
USE_TZ = True
# Both recommend connections that persist.
DATABASES = {"default": databases.settings_of(os.environ["DATABASE_URL"]) | {"CONN_MAX_AGE": None}}
BACKENDS = {
    "django_tasks_db": "django_tasks_db.DatabaseBackend",
    "django_ox": "django_ox.backend.OxBackend",
}
BACKEND_APP = os.environ["BENCH_TASKS"]
INSTALLED_APPS = [BACKEND_APP]
if not find_spec("django.tasks"):
    INSTALLED_APPS.append("django_tasks")
TASKS = {"default": {"BACKEND": BACKENDS[BACKEND_APP]}}
