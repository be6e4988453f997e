"""Who looks at the admin in these tests, and at what."""

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from tests.admin.people import person
from tests.factories import JobAttemptFactory, JobFactory

__all__ = ["person"]

SECRET = "swordfish"


def page(client, name, *args, **query):
    return client.get(reverse(f"admin:django_jobqueue_{name}", args=args), query)


def job_list(client, **query):
    return page(client, "job_changelist", **query)


@pytest.fixture
def viewer(client, db):
    """A client whose user may look at jobs and nothing else, and a way to allow more."""
    user = User.objects.create_user("viewer", is_staff=True)

    def allow(*codenames):
        user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))

    allow("view_job", "view_jobattempt")
    client.force_login(user)
    client.allow = allow
    return client


@pytest.fixture
def failed_job(db):
    job = JobFactory(failed=True, payload={"password": SECRET}, last_error=f"ValueError: {SECRET}")
    JobAttemptFactory(job=job, message=SECRET, traceback=SECRET)
    return job
