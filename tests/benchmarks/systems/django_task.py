"""The no-op task of the two peers that are backends of Django's tasks."""

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

from tests.benchmarks import stamps


@task()
def noop():
    stamps.count()
