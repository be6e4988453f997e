"""One job in the admin: what is shown to whom, and that nothing can be changed by form."""

from django.urls import reverse

from django_jobqueue.models import Job
from tests.admin.conftest import SECRET, page


def test_a_job_shows_what_it_carries_only_to_those_who_may_see_that(viewer, failed_job):
    without = page(viewer, "job_change", failed_job.pk)
    viewer.allow("view_job_payload")
    allowed = page(viewer, "job_change", failed_job.pk)

    assert without.status_code == allowed.status_code == 200
    assert SECRET not in without.text
    assert allowed.text.count(SECRET) >= 3


def test_nothing_of_a_job_can_be_changed_by_form(admin_client, failed_job):
    address = reverse("admin:django_jobqueue_job_change", args=[failed_job.pk])
    before = Job.objects.values().get(pk=failed_job.pk)

    assert admin_client.post(address, {"status": "succeeded"}).status_code == 403
    assert admin_client.get(reverse("admin:django_jobqueue_job_add")).status_code == 403
    delete = reverse("admin:django_jobqueue_job_delete", args=[failed_job.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert Job.objects.values().get(pk=failed_job.pk) == before
