"""The Tasks framework: a part of Django since 6.0, before that the package django-tasks."""

try:
    from django.tasks import TaskResultStatus, task
    from django.tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
except ImportError:
    from django_tasks import TaskResultStatus, task
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch

__all__ = ["TaskResultDoesNotExist", "TaskResultMismatch", "TaskResultStatus", "task"]
