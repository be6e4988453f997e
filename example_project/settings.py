"""Settings of the example project: safe on one's own machine, and changed by the environment.

See `.env.example` for every variable.
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from . import environment

PROJECT_DIR = Path(__file__).resolve().parent
BASE_DIR = PROJECT_DIR.parent

environment.read_dotenv(BASE_DIR / ".env")

DEBUG = environment.flag("DEBUG", default=True)
SECRET_KEY = environment.text("SECRET_KEY")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured("DEBUG is off and SECRET_KEY is not set; set a long random one.")
    # Made anew at each start. The processes this one starts inherit it, so a reload of the
    # development server keeps the logins.
    SECRET_KEY = os.environ["SECRET_KEY"] = get_random_secret_key()

ALLOWED_HOSTS = environment.names("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = environment.names("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_jobqueue",
    "example_project",
    "example_project.files",
    "example_project.texts",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "example_project.security.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = environment.databases(PROJECT_DIR / "db.sqlite3", BASE_DIR)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = environment.text("STATIC_ROOT") or None
# Nothing in here is served as it is: the views hand out downloads and thumbnails.
MEDIA_ROOT = environment.text("MEDIA_ROOT") or str(PROJECT_DIR / "media")
MAX_UPLOAD_MIB = environment.number("MAX_UPLOAD_MIB", default=20)
# How long the simulated slow scan takes for one document.
SCAN_SECONDS = environment.number("SCAN_MS", default=2000) / 1000

JOBQUEUE = environment.jobqueue()

# Django's Tasks run on the queue too. Before Django 6.0 they need the package django-tasks: without
# it everything else works, and the page of texts says what is missing.
TASKS = {}
if environment.has_tasks_framework():
    TASKS = {"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend", "QUEUES": []}}

OTEL_ENABLED = environment.flag("OTEL_ENABLED", default=False)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"job": {"()": "django_jobqueue.job_context.JobContextFilter"}},
    "formatters": {
        "timed": {"format": "%(asctime)s %(levelname)s %(name)s [%(job_id)s]: %(message)s"}
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "filters": ["job"],
            "formatter": "timed",
        }
    },
    "loggers": {
        "django_jobqueue": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "example_project": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}
