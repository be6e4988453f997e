"""The insights page: for whom, what it says first, and what it shows."""

import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.urls import reverse

from django_jobqueue.health import PROBES, Thresholds
from django_jobqueue.models import Job
from tests.factories import JobFactory, QueueControlFactory
from tests.insights.rows import finished, history, now, worker

pytestmark = pytest.mark.django_db

SECRET = "swordfish"


@pytest.fixture
def viewer(client):
    user = User.objects.create_user("viewer", is_staff=True)

    def allow(*codenames):
        user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))

    client.force_login(user)
    client.allow = allow
    allow("view_job")
    return client


def page(client, **query):
    return client.get(reverse("admin:django_jobqueue_insights"), query)


def test_the_page_has_its_own_address():
    assert reverse("admin:django_jobqueue_insights") == "/admin/django_jobqueue/insights/"


def test_who_may_not_view_jobs_is_refused(client):
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert page(client).status_code == 403

    client.logout()
    assert page(client).status_code == 302


def test_the_apps_index_and_the_job_list_lead_to_it(viewer):
    address = reverse("admin:django_jobqueue_insights")

    for name in ("index", "django_jobqueue_job_changelist"):
        assert f'href="{address}"' in viewer.get(reverse(f"admin:{name}")).text


def test_the_page_needs_no_migration_and_no_permission():
    assert "insights" not in {model._meta.model_name for model in apps.get_models()}
    call_command("makemigrations", "django_jobqueue", check=True, dry_run=True, verbosity=0)


def test_of_an_empty_queue_it_says_that_nothing_waits(viewer):
    text = page(viewer).text

    for words in (
        "The queue is healthy", "No job waits to be run now.", "No worker is alive.",
        "No job failed in the window.", "There has been no job yet.", "Nothing to show.",
    ):  # fmt: skip
        assert words in text


def test_of_a_healthy_queue_it_says_when_the_backlog_is_gone(viewer):
    history(100, seconds=20, type="a")
    worker("a", slots=1, busy=1, queues=["default", "mail"])
    for _ in range(12):
        JobFactory(type="a", ready_at=now() - timedelta(seconds=3))

    text = page(viewer).text

    assert "The queue is healthy" in text
    assert re.search(r"12 jobs wait, the oldest for [3-9] seconds\.", text)
    assert "1 worker is alive. 0 jobs run on 1 slots." in text
    assert "The backlog will be gone in about 4 minutes." in text
    assert "1 of 1" in text
    assert "default, mail" in text


def test_problems_come_first(viewer):
    worker("a")
    JobFactory(type="b")
    QueueControlFactory(kind="queue", name="held", reason="moving house")
    JobFactory(type="a", queue="held")
    lost = JobFactory(type="a", running=True)
    Job.objects.filter(pk=lost.pk).update(lease_expires_at=now() - timedelta(minutes=11))
    for _ in range(20):
        finished(1, failed=True, type="a")

    response = page(viewer)

    assert response.context["verdict"].headline == "The queue needs attention"
    assert response.context["verdict"].problems == [
        "No live worker runs 1 type that has waiting jobs: b.",
        "1 job waits behind a pause.",
        "1 running job has been stuck for longer than 10 minutes.",
        "20 of 20 jobs that ended in the last hour failed.",
    ]
    assert "moving house" in response.text


def test_a_job_that_waits_for_days_beside_a_live_worker_is_a_problem(viewer):
    worker("a")
    JobFactory(type="a", created_at=now() - timedelta(days=3))

    response = page(viewer)

    assert "The queue needs attention" in response.text
    assert response.context["verdict"].problems == [
        "The oldest due job has waited for 3 days, longer than 10 minutes."
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limit", [0, 60, 3_600])
def test_the_page_and_the_health_probe_judge_alike(viewer, jobqueue, limit):
    jobqueue(HEALTH_MAX_OVERDUE=limit, HEALTH_MAX_STUCK=1, HEALTH_MAX_FAILING=0.4)
    worker("a")
    JobFactory(type="a", created_at=now() - timedelta(minutes=2))
    for minutes in (1, 10):
        lost = JobFactory(type="a", running=True)
        at = now() - timedelta(minutes=minutes)
        Job.objects.filter(pk=lost.pk).update(lease_expires_at=at)
    for failed in [True] * 9 + [False] * 11:
        finished(1, type="a", **{"failed" if failed else "succeeded": True})

    report = PROBES["queue"](Thresholds.from_settings(), None)
    verdict = page(viewer).context["verdict"]

    assert len(report.problems) == {0: 3, 60: 3, 3_600: 1}[limit]
    assert len(verdict.problems) == len(report.problems)


def test_a_job_that_is_stuck_for_a_moment_is_told_and_no_problem(viewer):
    worker("a")
    lost = JobFactory(type="a", running=True)
    Job.objects.filter(pk=lost.pk).update(lease_expires_at=now() - timedelta(minutes=1))

    verdict = page(viewer).context["verdict"]

    assert verdict.problems == []
    assert "1 running job is stuck: nobody holds it any more." in verdict.facts


def test_an_error_without_a_class_tells_nothing_to_those_who_may_not_view_payloads(viewer):
    finished(1, failed=True, last_error=f"{SECRET} is wrong")
    finished(1, failed=True, last_error=SECRET)

    text = page(viewer).text

    assert SECRET not in text
    assert '<th scope="row">of unknown class</th><td>2</td>' in text


def test_jobs_that_wait_while_no_worker_lives_are_a_problem(viewer):
    worker("a", seen_ago=timedelta(hours=1))
    JobFactory(type="a")

    assert "1 job waits and no worker is alive." in page(viewer).text


def test_many_unserved_types_are_counted_and_a_few_named(viewer):
    worker("z")
    for name in "abcdefg":
        JobFactory(type=name)

    assert "7 types that have waiting jobs: a, b, c, d, e and 2 more." in page(viewer).text


def test_messages_of_errors_are_for_those_who_may_view_payloads(viewer):
    finished(1, failed=True, last_error=f"ValueError: row 7 of {SECRET}")

    without = page(viewer).text
    viewer.allow("view_job_payload")
    allowed = page(viewer).text

    assert "ValueError" in without
    assert SECRET not in without
    assert f"ValueError: row &lt;n&gt; of {SECRET}" in allowed


@pytest.mark.parametrize("window", ["1h", "24h", "7d", "30d", "90d"])
def test_a_window_is_chosen_by_the_address(viewer, window):
    finished(1, ago=timedelta(minutes=5))

    response = page(viewer, window=window)

    assert response.status_code == 200
    assert f'<a href="?window={window}" aria-current="page">' in response.text
    assert response.context["overview"].durations.overall.samples == 1


@pytest.mark.parametrize("window", ["7y", "", "91d", "<script>", "7d\0"])
def test_a_window_that_is_not_offered_is_named_with_the_remedy(viewer, window):
    response = page(viewer, window=window)

    assert response.status_code == 400
    assert "expected one of 1h, 24h, 7d, 30d, 90d." in response.text
    assert "<script>'" not in response.text


def test_the_page_holds_no_inline_script_style_or_handler(viewer):
    history(20, type="a")
    finished(1, failed=True)
    JobFactory(type="a")
    worker("a")

    text = page(viewer).text
    content = text[text.index('id="content-main"') :]

    assert "<svg" in content
    assert not re.search(r"<script|<style|\sstyle=|\son\w+=|javascript:", content)


def test_beside_each_picture_is_a_table_of_its_numbers(viewer):
    history(20, seconds=2, type="a")
    JobFactory(type="a")

    text = page(viewer).text

    assert text.count('role="img"') == 3
    assert text.count("<summary>The numbers</summary>") == 3
    assert "1 s to 3 s" in text
    assert "Half of 20 jobs took at most 2 s, nineteen of twenty at most 2 s." in text


def test_what_nothing_is_known_of_is_left_empty(viewer):
    JobFactory(type="a")

    response = page(viewer)

    assert "none known" in response.text
    assert "No run of this type has finished yet" in response.text
    (row,) = response.context["types"]
    assert (row.spread, row.done_in) == (None, "unknown")


def test_totals_and_types_are_shown(viewer):
    history(1200, seconds=1, type="a")

    text = page(viewer).text

    assert "1,200" in text
    assert "“Done in” is (pending + running) " in text
