"""What an operator does to jobs, queues and schedules, in a real browser."""

from datetime import timedelta
from typing import NamedTuple

import pytest
from django.utils import timezone

from django_jobqueue.models import Job, QueueControl, Schedule
from tests.browser import scene
from tests.factories import JobFactory, ScheduleFactory

QUEUE = "/admin/django_jobqueue"
LONG_AGO = timedelta(minutes=20)
SURE = "Yes, I\N{RIGHT SINGLE QUOTATION MARK}m sure"


class Action(NamedTuple):
    """How an action is found, and what becomes of a job; None where nothing is left of it."""

    name: str
    button: str
    question: str
    sure: str
    message: str
    status: str | None
    traits: dict


ACTIONS = (
    Action(
        *("retry_jobs", "Retry job", "Retry {} failed or cancelled job"),
        *("Yes, retry", "to run again.", "pending", {"failed": True}),
    ),
    Action(
        *("cancel_jobs", "Cancel job", "Cancel {} pending job"),
        *("Yes, cancel", "cancelled.", "cancelled", {}),
    ),
    Action(
        *("delete_jobs", "Delete job", "Delete {} job"),
        *("Yes, delete", "deleted.", None, {"succeeded": True}),
    ),
    Action(
        *("reset_jobs", "Reset job", "Reset {} stuck job"),
        *("Yes, reset", "reset.", "pending", {"running": True, "max_attempts": 5}),
    ),
)
each_action = pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)


def jobs_for(action, count):
    since = timezone.now() - LONG_AGO
    times = {"started_at": since} if "running" in action.traits else {}
    return Job.objects.bulk_create(JobFactory.build_batch(count, **action.traits, **times))


def states(jobs):
    found = dict(Job.objects.values_list("pk", "status"))
    return [found.get(job.pk) for job in jobs]


def tick(browser, ids):
    for job_id in ids:
        browser.find(f"input.action-select[value='{job_id}']").click()


def choose_and_go(browser, action):
    browser.choose("select[name=action]", action.name)
    browser.follow("button[name=index]")


@each_action
def test_chosen_rows_one_job_and_all_that_match_are_changed(address, browser, log_in, action):
    user = scene.operator()
    jobs = jobs_for(action, 104)
    log_in(address, user)

    one, *others = jobs
    browser.open(f"{address}{QUEUE}/job/{one.pk}/change/")
    browser.follow(browser.button(action.button))
    assert action.question.format(1) in browser.find("h1").text
    before = one.status
    assert states([one]) == [before]
    browser.follow(browser.button(action.sure))
    assert action.message in browser.find(".messagelist").text
    assert states(jobs) == [action.status, *[before] * 103]

    browser.open(f"{address}{QUEUE}/job/?status={before}")
    chosen = browser.values("input.action-select")[:2]
    tick(browser, chosen)
    choose_and_go(browser, action)
    assert action.question.format(2) in browser.find("h1").text
    browser.follow(browser.link("No, take me back"))
    assert states(others) == [before] * 103

    tick(browser, chosen)
    choose_and_go(browser, action)
    browser.follow(browser.button(action.sure))
    assert action.message in browser.find(".messagelist").text
    now = dict(zip(others, states(others), strict=True))
    assert {str(job.pk) for job in others if now[job] == action.status} == set(chosen)

    browser.open(f"{address}{QUEUE}/job/?status={before}&type={one.type}")
    browser.find("#action-toggle").click()
    browser.find(".actions .question a").click()
    choose_and_go(browser, action)
    assert browser.find("h1").text.startswith(action.question.split("{")[0])
    browser.follow(browser.button(action.sure))
    assert action.message in browser.find(".messagelist").text
    assert states(jobs) == [action.status] * 104


def test_a_queue_is_paused_and_resumed(address, browser, log_in):
    user = scene.operator()
    job = JobFactory(queue="mail")
    log_in(address, user)
    browser.open(f"{address}{QUEUE}/job/{job.pk}/change/")

    browser.follow(browser.link("Pause this queue"))
    browser.fill("#id_reason", "the provider is down")
    browser.follow(browser.button("Continue"))
    assert "Pause the queue mail?" in browser.text
    assert not QueueControl.objects.exists()
    browser.follow(browser.button(SURE))
    assert "The queue mail is paused." in browser.text
    assert "the provider is down" in browser.text
    assert QueueControl.objects.get().name == "mail"

    browser.follow(browser.button("Resume"))
    browser.follow(browser.button(SURE))
    assert "The queue mail is no longer paused." in browser.text
    assert not QueueControl.objects.exists()


def test_a_schedule_is_changed_by_its_form(address, browser, log_in):
    user = scene.operator()
    schedule = ScheduleFactory(name="end of month")
    log_in(address, user)
    browser.open(f"{address}{QUEUE}/schedule/")

    browser.follow(browser.link("end of month"))
    browser.fill("#id_cron", "every day")
    browser.follow("input[name=_save]")
    assert browser.all(".errorlist")
    assert Schedule.objects.get(pk=schedule.pk).cron == "0 3 * * *"
    browser.fill("#id_cron", "30 4 1 * *")
    browser.find("#id_paused").click()
    browser.follow("input[name=_save]")

    changed = Schedule.objects.get(pk=schedule.pk)
    assert (changed.cron, changed.paused) == ("30 4 1 * *", True)
    assert "was changed successfully" in browser.text
