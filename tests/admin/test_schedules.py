"""Schedules in the admin: the one thing of the queue that people edit by form."""

import pytest
from django.urls import reverse

from django_jobqueue.models import Schedule
from tests.admin.pages import address, store_deep_payload
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db

SECRET = "swordfish"

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


@pytest.fixture
def stored():
    return ScheduleFactory(payload={"note": SECRET, "password": "hunter2"})


LISTS = ("job", "schedule", "queuecontrol", "jobstatsrollup", "workerprocess")


@pytest.mark.parametrize("model", LISTS)
@pytest.mark.parametrize(
    "asked",
    [
        *("type=%00", "type=a%00b", "q=%00", "name=%00", "paused__exact=%00", "host=%00"),
        *("status=%00", "queue=%00", "activity=%00", "o=%00", "p=%00", "kind=%00", "id=%00"),
        *("payload__password__startswith=h", "_to_field=payload", "type__startswith=t"),
    ],
)
def test_no_list_breaks_by_what_its_address_asks(admin_client, stored, model, asked):
    response = admin_client.get(f"{address(f'{model}_changelist')}?{asked}")

    assert response.status_code in {200, 302, 400}


@pytest.mark.parametrize(
    "lookup", ["payload__password__startswith", "payload__note", "payload", "name", "id__gt"]
)
def test_a_list_answers_nothing_but_its_filters(person, stored, lookup):
    client = person("view_schedule", "view_job_payload")

    response = client.get(address("schedule_changelist"), {lookup: "h"})

    assert response.status_code == 400


def test_the_filters_work(admin_client, stored):
    ScheduleFactory(paused=True)

    response = admin_client.get(address("schedule_changelist"), {"paused__exact": "1"})

    assert [row.paused for row in response.context["cl"].result_list] == [True]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("permission", ["view_schedule", "change_schedule"])
def test_a_stored_payload_is_nowhere_for_those_who_may_not_view_payloads(
    person, stored, declared, permission
):
    Schedule.objects.update(declared_in_code=declared)
    client = person(permission)

    text = client.get(address("schedule_change", stored.pk)).text

    assert stored.name in text
    assert SECRET not in text
    assert "payload" not in text.lower()


def test_who_may_not_view_payloads_edits_the_rest_and_leaves_the_payload(person, stored):
    client = person("change_schedule")
    changed = FORM | {"payload": '{"note": "written over"}', "cron": "0 4 * * *"}

    response = client.post(address("schedule_change", stored.pk), changed)

    row = Schedule.objects.get()
    assert response.status_code == 302
    assert (row.cron, row.payload) == ("0 4 * * *", stored.payload)


def test_a_stored_payload_that_is_no_object_keeps_nobody_from_pausing(person, stored):
    Schedule.objects.update(payload=[SECRET])

    response = person("change_schedule").post(
        address("schedule_change", stored.pk), FORM | {"paused": "on"}
    )

    row = Schedule.objects.get()
    assert response.status_code == 302
    assert (row.paused, row.payload) == (True, [SECRET])


def test_who_may_not_view_payloads_may_give_one_to_a_new_schedule(person):
    client = person("add_schedule")

    response = client.post(address("schedule_add"), FORM | {"payload": '{"a": 1}'})

    assert response.status_code == 302
    assert Schedule.objects.get().payload == {"a": 1}


def test_who_may_view_payloads_changes_them(person, stored):
    client = person("change_schedule", "view_job_payload")
    page = address("schedule_change", stored.pk)

    assert SECRET in client.get(page).text
    client.post(page, FORM | {"payload": '{"a": 2}'})

    assert Schedule.objects.get().payload == {"a": 2}


@pytest.mark.parametrize("declared", [True, False])
def test_a_payload_that_is_only_read_is_masked(person, stored, declared):
    Schedule.objects.update(declared_in_code=declared)
    editing = ["change_schedule"] if declared else []
    client = person("view_schedule", "view_job_payload", *editing)

    text = client.get(address("schedule_change", stored.pk)).text

    assert SECRET in text
    assert "********" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("permission", ["view_schedule", "change_schedule"])
def test_a_payload_that_is_nested_very_deep_breaks_neither_list_nor_page(
    person, stored, permission
):
    store_deep_payload("schedule", stored.pk)
    client = person("view_schedule", "view_job_payload", permission)

    assert client.get(address("schedule_changelist")).status_code == 200
    assert "nested too deep" in client.get(address("schedule_change", stored.pk)).text


def test_a_schedule_with_a_payload_that_is_nested_very_deep_can_be_paused(person, stored):
    store_deep_payload("schedule", stored.pk)
    client = person("change_schedule", "view_job_payload")

    response = client.post(address("schedule_change", stored.pk), FORM | {"paused": "on"})

    assert response.status_code == 302
    assert Schedule.objects.defer("payload").get().paused


def test_a_type_that_nobody_here_knows_is_saved_with_a_warning(admin_client):
    address = reverse("admin:django_jobqueue_schedule_add")

    response = admin_client.post(address, {**FORM, "type": "reports.misspelt"}, follow=True)

    assert Schedule.objects.get().type == "reports.misspelt"
    warnings = [m.message for m in response.context["messages"] if m.level_tag == "warning"]
    assert len(warnings) == 1
    assert warnings[0].startswith("No handler of the type reports.misspelt is known here.")


def test_a_known_type_is_saved_without_a_warning(admin_client):
    response = admin_client.post(reverse("admin:django_jobqueue_schedule_add"), FORM, follow=True)

    assert {m.level_tag for m in response.context["messages"]} == {"success"}


def test_the_list_marks_types_without_a_handler_here(admin_client):
    Schedule.objects.create(name="good", type="test.echo", cron="0 3 * * *")
    Schedule.objects.create(name="bad", type="reports.<misspelt>", cron="0 3 * * *")

    page = admin_client.get(reverse("admin:django_jobqueue_schedule_changelist")).content.decode()

    note = '<br><span class="jobqueue-note">no handler known here</span>'
    assert page.count("no handler known here") == 1
    assert f"reports.&lt;misspelt&gt;{note}" in page
