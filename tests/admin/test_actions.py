"""Actions on jobs: who may, what is asked first, what is done, and what is told."""

import uuid
from dataclasses import replace

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.db import OperationalError
from django.test import Client

from django_jobqueue.admin import operations
from django_jobqueue.managers import bulk
from django_jobqueue.models import Job
from django_jobqueue.states import BulkReport, JobStatus
from tests.admin.pages import address, confirm, form_with, messages_of
from tests.factories import JobFactory
from tests.managers.rows import expired

pytestmark = pytest.mark.django_db

LIST = "job_changelist"

APPLICABLE = {
    "retry": lambda **columns: JobFactory(failed=True, **columns),
    "cancel": JobFactory,
    "reset": expired,
    "delete": lambda **columns: JobFactory(succeeded=True, **columns),
}
PERMISSIONS = {
    "retry": "retry_job",
    "cancel": "cancel_job",
    "reset": "reset_stuck_jobs",
    "delete": "delete_job",
}
names = pytest.mark.parametrize("name", APPLICABLE)


def ask(client, name, *jobs, across=False, query="", **data):
    """Choose jobs in the list and an action in its menu."""
    chosen = {
        "action": f"{name}_jobs",
        "select_across": "1" if across else "0",
        "index": "0",
        "_selected_action": [str(getattr(job, "pk", job)) for job in jobs],
    }
    return client.post(address(LIST) + query, chosen | data)


def rows():
    return list(Job.objects.order_by("pk").values())


def state(job):
    row = Job.objects.filter(pk=job.pk).first()
    return row.status if row else "deleted"


CHANGED = {
    "retry": JobStatus.PENDING,
    "cancel": JobStatus.CANCELLED,
    "reset": JobStatus.PENDING,
    "delete": "deleted",
}


class TestInTheList:
    @names
    def test_it_asks_first_and_changes_nothing(self, person, name):
        job = APPLICABLE[name]()
        before = rows()

        page = ask(person(PERMISSIONS[name]), name, job)

        assert page.status_code == 200
        assert page.context["title"] in page.text
        assert " 1 " in page.context["title"]
        assert rows() == before

    @names
    def test_it_is_done_once_it_is_confirmed(self, person, name):
        client, job, other = person(PERMISSIONS[name]), APPLICABLE[name](), APPLICABLE[name]()

        done = confirm(client, ask(client, name, job))

        assert (done.status_code, done.url) == (302, address(LIST))
        assert state(job) == CHANGED[name]
        assert state(other) != CHANGED[name]
        [text] = messages_of(done)
        assert text.startswith("1 ")

    @names
    @pytest.mark.parametrize("allowed", ["nothing", "the others"])
    def test_it_needs_its_own_permission(self, person, name, allowed):
        others = [codename for each, codename in PERMISSIONS.items() if each != name]
        client = person(*(others if allowed == "the others" else []), "view_job_payload")
        job = APPLICABLE[name]()
        before = rows()

        offered = client.get(address(LIST)).text
        asked = ask(client, name, job)
        forced = ask(client, name, job, confirmed="1")

        assert f'value="{name}_jobs"' not in offered
        for response in (asked, forced):
            assert response.status_code in {200, 302}
            assert "confirmed" not in response.text
        assert rows() == before

    @names
    def test_it_checks_its_permission_again_when_it_is_confirmed(self, person, name):
        client, job = person(PERMISSIONS[name]), APPLICABLE[name]()
        page = ask(client, name, job)
        client.user.user_permissions.clear()
        before = rows()

        assert confirm(client, page).status_code == 403
        assert rows() == before

    @names
    def test_it_is_not_enough_without_viewing(self, person, name):
        client, job = person(PERMISSIONS[name], view=False), APPLICABLE[name]()

        assert ask(client, name, job).status_code == 403
        assert ask(client, name, job, confirmed="1").status_code == 403
        assert state(job) != CHANGED[name]

    @names
    def test_a_stranger_is_sent_to_the_login(self, client, name):
        job = APPLICABLE[name]()

        response = ask(client, name, job, confirmed="1")

        assert response.status_code == 302
        assert "/login/" in response.url
        assert state(job) != CHANGED[name]

    @names
    def test_a_request_without_a_csrf_token_is_refused(self, person, name):
        client, job = person(PERMISSIONS[name], enforce_csrf_checks=True), APPLICABLE[name]()

        assert ask(client, name, job, confirmed="1").status_code == 403
        assert state(job) != CHANGED[name]

    @names
    def test_a_second_confirmation_harms_nothing(self, person, name):
        client, job = person(PERMISSIONS[name]), APPLICABLE[name]()
        page = ask(client, name, job)
        confirm(client, page)
        before = rows()

        assert confirm(client, page).status_code == 302
        assert rows() == before

    def test_looking_at_an_address_with_an_action_does_nothing(self, admin_client):
        job = JobFactory(failed=True)
        before = rows()

        admin_client.get(
            address(LIST),
            {"action": "retry_jobs", "_selected_action": str(job.pk), "confirmed": "1"},
        )

        assert rows() == before

    def test_django_s_own_deletion_is_not_offered(self, admin_client):
        job = JobFactory(succeeded=True)

        assert "delete_selected" not in admin_client.get(address(LIST)).text
        ask(admin_client, "x", job, action="delete_selected", post="yes")
        assert state(job) == JobStatus.SUCCEEDED


class TestWhatIsAsked:
    def test_how_many_jobs_and_which_are_skipped(self, admin_client):
        failed = JobFactory.create_batch(2, failed=True)
        others = [JobFactory(), JobFactory(running=True), JobFactory(running=True)]

        page = ask(admin_client, "retry", *failed, *others)

        assert "Retry 2 failed or cancelled jobs?" in page.text
        assert "2 that are running" in page.text
        assert "1 in another state" in page.text

    def test_a_number_as_people_write_it(self, admin_client, settings):
        settings.USE_THOUSAND_SEPARATOR = True
        JobFactory.create_batch(3, failed=True)
        assert operations.shown_count(1_234) == "1,234"
        assert operations.shown_count(9_999) == "9,999"

    def test_no_more_than_can_be_counted(self):
        assert operations.shown_count(10_000) == "10,000+"

    def test_nothing_when_it_applies_to_none_of_them(self, admin_client):
        job = JobFactory()

        response = ask(admin_client, "retry", job)

        assert response.status_code == 302
        assert messages_of(response) == [
            "No failed or cancelled job is among them: nothing to retry."
        ]

    def test_an_id_that_is_none_is_refused(self, admin_client):
        assert ask(admin_client, "retry", "not-an-id").status_code == 400

    def test_an_unknown_id_is_nothing_to_do(self, admin_client):
        assert ask(admin_client, "retry", uuid.uuid4()).status_code == 302

    def test_the_way_back_is_the_list_as_it_was(self, admin_client):
        job = JobFactory(failed=True)

        page = ask(admin_client, "retry", job, query="?status=failed")

        assert page.context["back_url"] == address(LIST) + "?status=failed"


class TestAllThatMatch:
    def test_are_those_of_the_filter_that_was_shown(self, admin_client):
        chosen = JobFactory.create_batch(3, failed=True)
        other = JobFactory(cancelled=True)
        query = "?status=failed"

        page = ask(admin_client, "retry", chosen[0], across=True, query=query)
        assert "Retry 3 failed or cancelled jobs?" in page.text
        url, data = form_with(page, "confirmed")
        done = confirm(admin_client, page)

        assert url.endswith(query)
        assert len(data["_selected_action"]) == 1
        assert done.status_code == 302
        assert {state(job) for job in chosen} == {JobStatus.PENDING}
        assert state(other) == JobStatus.CANCELLED

    def test_are_only_the_chosen_ones_without_that(self, admin_client):
        first, second = JobFactory.create_batch(2, failed=True)

        confirm(admin_client, ask(admin_client, "retry", first))

        assert (state(first), state(second)) == (JobStatus.PENDING, JobStatus.FAILED)

    def test_are_no_more_than_the_page_said(self, admin_client):
        first = JobFactory(failed=True)
        page = ask(admin_client, "delete", first, across=True, query="?status=failed")
        assert "Delete 1 job for good?" in page.text
        others = JobFactory.create_batch(2, failed=True)

        again = confirm(admin_client, page)

        assert "Delete 2 jobs for good?" in again.text
        assert set(Job.objects.all()) == set(others)

    @pytest.mark.parametrize("count", ["yes", "0", "-1", "", "1e3"])
    def test_are_refused_without_a_number_that_was_agreed_to(self, admin_client, count):
        job = JobFactory(failed=True)

        assert ask(admin_client, "retry", job, confirmed=count).status_code == 400
        assert state(job) == JobStatus.FAILED

    def test_are_told_of_and_logged_as_far_as_the_database_went(self, admin_client, monkeypatch):
        jobs = JobFactory.create_batch(5, failed=True)
        broken = BulkReport(2, {}, 3, OperationalError("canceling statement"))
        retry = replace(
            operations.RETRY,
            run=lambda jobs, limit: broken if limit else BulkReport(0, {}, 5),
        )
        monkeypatch.setattr("django_jobqueue.admin.actions.RETRY", retry)

        done = confirm(admin_client, ask(admin_client, "retry", jobs[0], across=True))

        assert done.status_code == 302
        assert messages_of(done) == [
            "2 jobs wait to run again.",
            "3 jobs that this applies to are left.",
            "The database ended this early. What is said to be done is done.",
        ]
        assert LogEntry.objects.get().get_change_message() == "2 jobs wait to run again."

    def test_are_gone_on_with_when_some_are_left(self, admin_client, monkeypatch):
        jobs = JobFactory.create_batch(5, failed=True)
        monkeypatch.setattr(bulk, "BULK_BATCH", 3)
        retry_all = Job.objects.retry_all
        few = replace(
            operations.RETRY,
            run=lambda jobs, limit: retry_all(jobs, limit=min(limit, 3)),
        )
        monkeypatch.setattr("django_jobqueue.admin.actions.RETRY", few)
        query = "?status=failed"

        page = ask(admin_client, "retry", jobs[0], across=True, query=query)
        again = confirm(admin_client, page)

        assert again.status_code == 200
        assert "Retry 2 failed or cancelled jobs?" in again.text
        assert "3 jobs wait to run again." in again.text
        assert "2 jobs that this applies to are left." in again.text
        assert confirm(admin_client, again).status_code == 302
        assert {state(job) for job in jobs} == {JobStatus.PENDING}

    def test_that_changed_since_they_were_asked_for_are_left_alone(self, admin_client):
        job, later = JobFactory.create_batch(2, failed=True)
        page = ask(admin_client, "retry", job, later)
        Job.objects.filter(pk=job.pk).update(status=JobStatus.SUCCEEDED)

        done = confirm(admin_client, page)

        assert state(job) == JobStatus.SUCCEEDED
        assert messages_of(done) == ["1 job waits to run again.", "Skipped: 1 in another state."]

    def test_are_changed_in_few_queries(self, admin_client, django_assert_max_num_queries):
        JobFactory.create_batch(60, failed=True)
        page = ask(admin_client, "retry", Job.objects.first(), across=True)

        with django_assert_max_num_queries(30):
            confirm(admin_client, page)
        assert Job.objects.pending().count() == 60


class TestOnOneJob:
    @names
    def test_it_asks_first_and_is_done_once_it_is_confirmed(self, person, name):
        client, job = person(PERMISSIONS[name]), APPLICABLE[name]()
        url = address("job_action", job.pk, name)
        assert url in client.get(address("job_change", job.pk)).text

        page = client.post(url)
        before = state(job)
        done = confirm(client, page)

        assert page.status_code == 200
        assert before != CHANGED[name]
        assert state(job) == CHANGED[name]
        deleted = name == "delete"
        assert done.url == (address(LIST) if deleted else address("job_change", job.pk))

    @names
    @pytest.mark.parametrize("who", ["viewer", "other operator", "payload viewer", "not viewing"])
    def test_others_may_not(self, person, name, who):
        others = [codename for each, codename in PERMISSIONS.items() if each != name]
        codenames = {
            "viewer": [],
            "other operator": others,
            "payload viewer": ["view_job_payload"],
            "not viewing": [PERMISSIONS[name]],
        }[who]
        client = person(*codenames, view=who != "not viewing")
        job = APPLICABLE[name]()
        url = address("job_action", job.pk, name)

        assert client.post(url).status_code == 403
        assert client.post(url, {"confirmed": "1"}).status_code == 403
        assert state(job) != CHANGED[name]
        assert url not in client.get(address("job_change", job.pk)).text

    @names
    def test_it_is_not_offered_where_it_does_not_apply(self, admin_client, name):
        job = JobFactory(running=True)

        url = address("job_action", job.pk, name)
        assert url not in admin_client.get(address("job_change", job.pk)).text
        response = admin_client.post(url, {"confirmed": "1"})

        assert response.status_code == 302
        assert state(job) == JobStatus.RUNNING

    @names
    def test_it_cannot_be_asked_for_by_get(self, admin_client, name):
        job = APPLICABLE[name]()

        response = admin_client.get(address("job_action", job.pk, name), {"confirmed": "1"})

        assert response.status_code == 405
        assert state(job) != CHANGED[name]

    def test_a_stranger_is_sent_to_the_login(self, client):
        job = JobFactory(failed=True)

        response = client.post(address("job_action", job.pk, "retry"), {"confirmed": "1"})

        assert "/login/" in response.url
        assert state(job) == JobStatus.FAILED

    def test_a_request_without_a_csrf_token_is_refused(self, admin_user):
        client, job = Client(enforce_csrf_checks=True), JobFactory(failed=True)
        client.force_login(admin_user)
        url = address("job_action", job.pk, "retry")

        assert client.post(url, {"confirmed": "1"}).status_code == 403
        assert state(job) == JobStatus.FAILED
        client.get(address("job_change", job.pk))
        token = client.cookies["csrftoken"].value
        page = client.post(url, {"csrfmiddlewaretoken": token})
        confirm(client, page)
        assert state(job) == JobStatus.PENDING

    def test_an_unknown_action_is_not_found(self, admin_client):
        job = JobFactory(failed=True)

        assert admin_client.post(address("job_action", job.pk, "run")).status_code == 404

    def test_a_job_that_is_gone_leads_to_the_list(self, admin_client):
        response = admin_client.post(address("job_action", uuid.uuid4(), "retry"))

        assert (response.status_code, response.url) == (302, address(LIST))


class TestTheLog:
    def test_names_the_job_that_was_changed(self, admin_client, admin_user):
        job = JobFactory(failed=True)
        url = address("job_action", job.pk, "retry")

        confirm(admin_client, admin_client.post(url))

        [entry] = LogEntry.objects.all()
        assert (entry.user, entry.object_id, entry.action_flag) == (admin_user, str(job.pk), CHANGE)
        assert "1 job waits to run again." in entry.get_change_message()
        history = admin_client.get(address("job_history", job.pk))
        assert "1 job waits to run again." in history.text

    def test_has_one_entry_for_many_jobs(self, admin_client):
        jobs = JobFactory.create_batch(3, succeeded=True)
        query = "?status=succeeded"

        confirm(admin_client, ask(admin_client, "delete", *jobs, query=query))

        [entry] = LogEntry.objects.all()
        assert (entry.object_repr, entry.object_id, entry.action_flag) == ("3 jobs", None, DELETION)
        assert entry.change_message == "3 jobs were deleted. (status=succeeded)"
        assert admin_client.get("/admin/").status_code == 200

    def test_is_silent_when_nothing_was_done(self, admin_client):
        ask(admin_client, "retry", JobFactory(), confirmed="1")

        assert not LogEntry.objects.exists()
