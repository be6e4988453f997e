"""People with some of the queue's permissions, each with a browser of their own."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

VIEW = ("view_job", "view_queuecontrol")


@pytest.fixture
def person(db):
    """Make somebody of the staff with these permissions, logged in: `person("retry_job")`.

    Everybody may look at jobs and pauses unless `view=False`.
    """

    def make(*codenames, view=True, **options):
        user = User.objects.create_user(f"person-{User.objects.count()}", is_staff=True)
        wanted = {*codenames, *(VIEW if view else ())}
        found = Permission.objects.filter(
            content_type__app_label="django_jobqueue", codename__in=wanted
        )
        assert {permission.codename for permission in found} == wanted
        user.user_permissions.add(*found)
        client = Client(**options)
        client.force_login(user)
        client.user = user
        return client

    return make
