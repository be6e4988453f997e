from django.apps import AppConfig


class LateConfig(AppConfig):
    """An app whose handler exists only once everything else is ready."""

    name = "tests.testapp.late"

    def ready(self):
        from django_jobqueue import job_handler

        @job_handler("test.late")
        def late(job):
            return job.attempts
