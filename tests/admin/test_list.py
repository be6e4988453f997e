"""The list of jobs: what it shows to whom."""

import re
import uuid
from datetime import timedelta
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from django_jobqueue.admin.rows import as_rows, state_of
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.admin.conftest import SECRET, job_list
from tests.factories import JobFactory

LONG_AGO = timedelta(hours=5)


class Cells(HTMLParser):
    """The text of each cell of the list, by the class that Django gives it."""

    def __init__(self, html):
        super().__init__()
        self.rows = []
        self.cell = None
        self.feed(html[html.index("<tbody>") : html.index("</tbody>")])

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append({})
        if tag in {"td", "th"}:
            (self.cell,) = (
                word.removeprefix("field-")
                for word in dict(attrs)["class"].split()
                if word.startswith("field-")
            )
            self.rows[-1][self.cell] = ""

    def handle_data(self, data):
        if self.cell and self.rows:
            words = [self.rows[-1].get(self.cell, ""), *data.split()]
            self.rows[-1][self.cell] = " ".join(words).strip()


def cells(response):
    return Cells(response.text).rows


def short(job):
    return f"{str(job.pk)[:13]}…{str(job.pk)[-6:]}"


def only_row(response):
    (row,) = cells(response)
    return row


def of_each_state():
    """One job in each state that the list tells apart, each with a secret in all it carries."""
    carried = {"payload": {"word": SECRET}, "last_error": f"ValueError: {SECRET}\nand {SECRET}"}
    long_ago = timezone.now() - LONG_AGO
    stuck = {"started_at": long_ago, "lease_expires_at": long_ago}
    return {
        "pending": JobFactory(**carried),
        "scheduled": JobFactory(scheduled=True, **carried),
        "running": JobFactory(running=True, **carried),
        "stuck": JobFactory(running=True, **carried, **stuck),
        "succeeded": JobFactory(succeeded=True, **carried | {"result": SECRET}),
        "failed": JobFactory(failed=True, **carried),
        "cancelled": JobFactory(cancelled=True, **carried),
    }


def test_every_state_has_its_word_and_an_icon_of_its_own(viewer):
    jobs = of_each_state()

    shown = {row["short_id"]: row["state"].split() for row in cells(job_list(viewer))}

    words = {name: shown[short(job)] for name, job in jobs.items()}
    assert {name: state[1] for name, state in words.items()} == {name: name for name in jobs}
    assert len({state[0] for state in words.values()}) == len(jobs)


def test_those_who_may_not_view_payloads_read_no_word_of_them_in_any_state(viewer):
    of_each_state()

    response = job_list(viewer)

    assert len(cells(response)) == 7
    assert SECRET.encode() not in response.content
    assert {row["error_class"] for row in cells(response)} == {"ValueError"}


def test_those_who_may_view_payloads_read_the_first_line_of_errors_and_nothing_else(viewer):
    of_each_state()
    viewer.allow("view_job_payload")

    response = job_list(viewer)

    assert {row["error_line"] for row in cells(response)} == {f"ValueError: {SECRET}"}
    assert f"and {SECRET}" not in response.text


def test_what_looks_like_a_secret_in_an_error_is_masked(viewer):
    JobFactory(failed=True, last_error=f"ValueError: no login with password={SECRET} there")
    viewer.allow("view_job_payload")

    response = job_list(viewer)

    assert "ValueError: no login with password=" in response.text
    assert SECRET not in response.text


@pytest.mark.parametrize("text", [f"the word is {SECRET}", f"a {SECRET}: yes", f"{SECRET}!"])
def test_an_error_without_a_class_in_front_shows_nothing_of_its_text(viewer, text):
    JobFactory(failed=True, last_error=text)

    response = job_list(viewer)

    assert only_row(response)["error_class"] == "of unknown class"
    assert SECRET not in response.text


def test_a_job_that_never_failed_has_no_error(viewer):
    JobFactory(succeeded=True)

    assert only_row(job_list(viewer))["error_class"] == "-"


def test_markup_in_what_a_job_says_stays_text(viewer):
    JobFactory(type="<b>type", queue="<i>queue", failed=True, last_error="ValueError: <u>x")
    viewer.allow("view_job_payload")

    text = job_list(viewer).text

    assert "&lt;b&gt;type" in text
    assert [tag for tag in ("<b>type", "<i>queue", "<u>x") if tag in text] == []


def test_a_type_shows_the_label_of_its_handler_or_that_none_is_known(viewer):
    JobFactory(type="test.unheard-of")
    JobFactory(type="jobqueue.history.purge")

    purge, unheard_of = (row["type_and_label"] for row in cells(job_list(viewer)))

    assert unheard_of == "test.unheard-of no handler known here"
    assert purge.startswith("jobqueue.history.purge")
    assert "no handler" not in purge


def test_attempts_are_shown_of_how_many_there_may_be(viewer, jobqueue):
    jobqueue(MAX_ATTEMPTS=5)
    JobFactory(attempts=2, max_attempts=3)
    JobFactory(type="test.unheard-of")

    unclaimed, tried = (row["attempts_of_budget"] for row in cells(job_list(viewer)))

    assert tried == "2 / 3"
    assert unclaimed == "0 / 5"


def test_age_and_duration_are_short_and_the_age_tells_its_time(viewer):
    created = timezone.now() - timedelta(minutes=4, seconds=20)
    started = created + timedelta(minutes=1)
    JobFactory(
        succeeded=True,
        created_at=created,
        started_at=started,
        finished_at=started + timedelta(seconds=7),
    )
    JobFactory(running=True, created_at=created, started_at=started)
    JobFactory(created_at=created)

    response = job_list(viewer)
    waiting, running, ended = cells(response)

    assert {row["age"] for row in (waiting, running, ended)} == {"4 min"}
    assert [row["duration"] for row in (waiting, running, ended)] == ["-", "3 min so far", "7 s"]
    assert f'<time datetime="{created.isoformat()}"' in response.text


def test_a_scheduled_job_says_when_it_is_due(viewer):
    JobFactory(due=True)
    JobFactory(scheduled_for=timezone.now() + timedelta(minutes=90))

    later, now = (row["state"] for row in cells(job_list(viewer)))

    assert later.endswith("in 1 h")
    assert now.endswith("due")


def test_a_row_leads_to_its_job_by_a_short_id_with_the_whole_one_in_its_title(viewer):
    job = JobFactory()

    text = job_list(viewer).text

    assert f'/job/{job.pk}/change/"' in text
    assert f'title="{job.pk}">{short(job)}<' in text


def test_the_newest_jobs_come_first_and_age_alone_can_turn_that_round(viewer):
    old, new = JobFactory(queue="one"), JobFactory(queue="two")

    def order(**query):
        return [row["queue_name"] for row in cells(job_list(viewer, **query))]

    columns = [header for header in job_list(viewer).text.split("<th ") if "sortable" in header]
    assert order() == ["two", "one"]
    assert len(columns) == 1
    (number,) = re.findall(r'href="\?o=(\d+)"', columns[0])
    assert order(o=number) == ["two", "one"]
    assert order(o=f"-{number}") == ["one", "two"]
    assert old.pk < new.pk


def test_a_page_has_no_inline_style_script_or_handler(viewer):
    of_each_state()

    html = job_list(viewer).text
    listed = html[html.index('id="changelist"') :]

    assert " style=" not in listed
    assert " onclick=" not in listed
    assert "<style" not in html
    assert 'href="/static/django_jobqueue/jobs.css"' in html


def test_the_colours_follow_the_system_and_the_choice_of_the_user():
    css = (files("django_jobqueue") / "static/django_jobqueue/theme.css").read_text()

    assert "@media (prefers-color-scheme: dark)" in css
    assert 'html[data-theme="dark"]' in css


def test_who_may_not_view_jobs_gets_no_list(client, db):
    client.force_login(User.objects.create_user("nobody", is_staff=True))

    assert job_list(client).status_code == 403


@pytest.mark.django_db
def test_a_running_job_is_stuck_when_a_signal_of_the_reaper_says_so(jobqueue):
    jobqueue(STUCK_THRESHOLD=60)
    earlier = timezone.now() - timedelta(minutes=5)
    JobFactory(running=True, started_at=earlier, lease_expires_at=None)
    JobFactory(running=True, started_at=timezone.now(), lease_expires_at=None)

    rows = as_rows(Job.objects.order_by("id"))

    assert [state_of(row) for row in rows] == ["stuck", JobStatus.RUNNING]


@pytest.mark.django_db
def test_a_row_reads_neither_payload_nor_result():
    JobFactory(pk=uuid.uuid4(), payload={"word": SECRET})

    (row,) = as_rows(Job.objects.all())

    assert {"payload", "result"} <= row.get_deferred_fields()
