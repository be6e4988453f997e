"""Schedules in the admin: the one thing of the queue that people edit by form."""

import pytest
from django.urls import reverse

from django_jobqueue.models import Schedule

FORM = {
    "name": "nightly",
    "type": "test.echo",
    "queue": "default",
    "priority": 0,
    "payload": "{}",
    "cron": "0 3 * * *",
    "timezone": "Europe/Berlin",
    "catch_up": "once",
    "limit": 10,
}


def test_a_schedule_is_made_in_the_admin(admin_client):
    response = admin_client.post(reverse("admin:django_jobqueue_schedule_add"), FORM)

    assert response.status_code == 302
    made = Schedule.objects.get(name="nightly")
    assert (made.cron, made.timezone, made.declared_in_code) == (
        "0 3 * * *",
        "Europe/Berlin",
        False,
    )


@pytest.mark.parametrize(
    ("field", "value"), [("cron", "every day"), ("timezone", "Europe/Atlantis")]
)
def test_an_unusable_schedule_is_refused_beside_its_field(admin_client, field, value):
    response = admin_client.post(
        reverse("admin:django_jobqueue_schedule_add"), {**FORM, field: value}
    )

    assert response.status_code == 200
    assert field in response.context["adminform"].form.errors
    assert not Schedule.objects.exists()


def test_a_declared_schedule_can_be_paused_and_not_redefined(admin_client):
    row = Schedule.objects.create(
        name="declared", type="test.echo", cron="0 3 * * *", declared_in_code=True
    )

    response = admin_client.post(
        reverse("admin:django_jobqueue_schedule_change", args=[row.pk]),
        {**FORM, "paused": "on"},
    )

    row.refresh_from_db()
    assert response.status_code == 302
    assert (row.paused, row.name, row.cron) == (True, "declared", "0 3 * * *")
