"""The admin: what it shows to whom, and that it changes nothing but schedules."""

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from django_jobqueue.models import Job, JobAttempt, Schedule
from tests.factories import JobFactory

SECRET = "swordfish"


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
    job = JobFactory(payload={"password": SECRET}, last_error=f"ValueError: {SECRET}")
    JobAttempt.objects.create(
        job=job,
        number=1,
        outcome="failed",
        finished_at=job.created_at,
        executor="server",
        worker="host:1:1",
        exception_class="ValueError",
        message=SECRET,
        traceback=SECRET,
    )
    return job


def page(client, name, *args, **query):
    return client.get(reverse(f"admin:django_jobqueue_{name}", args=args), query)


def test_the_list_shows_jobs_and_the_class_of_their_error(viewer, failed_job):
    response = page(viewer, "job_changelist")

    assert response.status_code == 200
    assert failed_job.type in response.text
    assert "ValueError" in response.text
    assert SECRET not in response.text


def test_a_job_shows_what_it_carries_only_to_those_who_may_see_that(viewer, failed_job):
    without = page(viewer, "job_change", failed_job.pk)
    viewer.allow("view_job_payload")
    allowed = page(viewer, "job_change", failed_job.pk)

    assert without.status_code == allowed.status_code == 200
    assert SECRET not in without.text
    assert allowed.text.count(SECRET) >= 3


@pytest.mark.parametrize(
    "query",
    [
        {"payload__password__startswith": "s"},
        {"last_error__regex": "s"},
        {"attempt_history__message__contains": "s"},
        {"result__isnull": "1"},
    ],
    ids=lambda query: next(iter(query)),
)
def test_no_address_can_ask_what_a_job_carries(viewer, failed_job, query):
    assert page(viewer, "job_changelist", **query).status_code == 400


def test_a_job_is_found_by_its_id_and_by_its_subject(viewer, db):
    job = JobFactory(subject_type="report", subject_id="7")
    other = JobFactory()

    for words in (str(job.pk), "7"):
        found = page(viewer, "job_changelist", q=words).text
        assert str(job.pk) in found
        assert str(other.pk) not in found


def test_nothing_of_a_job_can_be_changed_by_form(admin_client, failed_job):
    address = reverse("admin:django_jobqueue_job_change", args=[failed_job.pk])
    before = Job.objects.values().get(pk=failed_job.pk)

    assert admin_client.post(address, {"status": "succeeded"}).status_code == 403
    assert admin_client.get(reverse("admin:django_jobqueue_job_add")).status_code == 403
    delete = reverse("admin:django_jobqueue_job_delete", args=[failed_job.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert Job.objects.values().get(pk=failed_job.pk) == before


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
