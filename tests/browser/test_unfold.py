"""The same pages, unchanged, in the clothes of django-unfold."""

import pytest

from django_jobqueue.models import Job
from tests.browser import scene
from tests.browser.chromium import LOOKS
from tests.browser.colours import READABLE, luminance, seen

QUEUE = "/admin/django_jobqueue"
OURS = (
    ".jobqueue-state",
    ".jobqueue-note",
    ".jobqueue-page :is(h1, h2, dt, dd, th, td, p, li, pre, label, input)",
    ".jobqueue-button, .jobqueue-windows a",
)


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[-1]], ids=str)
def test_every_page_can_be_read(unfold_address, browser, log_in, look):
    user = scene.operator()
    job = scene.ordinary_day(hours=1)
    browser.look(look)
    log_in(unfold_address, user)

    for page, words in (
        (f"{QUEUE}/job/", "mail.send"),
        (f"{QUEUE}/job/{job.pk}/change/", "Job of the type billing.sync"),
        (f"{QUEUE}/insights/", "The queue needs attention"),
        (f"{QUEUE}/queuecontrol/", "the converter is being replaced"),
        (f"{QUEUE}/queuecontrol/add/", "For those who wonder later"),
        (f"{QUEUE}/schedule/", "Schedules"),
        (f"{QUEUE}/workerprocess/", "web-1"),
    ):
        browser.open(unfold_address + page)

        assert browser.status == 200, page
        assert words in browser.text, page
        assert browser.overflow() == 0, page
        faint = [it for selector in OURS for it in seen(browser, selector) if it.text]
        assert [it for it in faint if it.contrast < READABLE] == [], page
        main = seen(browser, "#main")[0].ground
        assert (luminance(main) < 0.1) == look.is_dark, page
        assert browser.complaints() == [], page


def test_the_theme_that_is_chosen_there_counts_more_than_the_systems(
    unfold_address, browser, log_in
):
    log_in(unfold_address, scene.operator())
    job = scene.ordinary_day(hours=1)
    dark = LOOKS[1]
    assert dark.is_dark
    browser.look(dark)
    browser.run("localStorage.setItem('adminTheme', JSON.stringify('light'))")

    browser.open(f"{unfold_address}{QUEUE}/job/{job.pk}/change/")

    (state, *_) = seen(browser, ".jobqueue-state")
    assert luminance(state.ground) > 0.9
    assert state.contrast > READABLE


def test_an_action_is_chosen_asked_and_done(unfold_address, browser, log_in):
    log_in(unfold_address, scene.operator())
    scene.ordinary_day(hours=1)
    browser.open(f"{unfold_address}{QUEUE}/job/?status=cancelled")

    browser.find("input.action-select").click()
    browser.choose("select[name=action]", "retry_jobs")
    browser.follow("button[name=index]")
    assert browser.find(".jobqueue-page h1").text == "Retry 1 failed or cancelled job?"
    browser.follow(browser.button("Yes, retry"))

    assert "1 job waits to run again." in browser.text
    assert not Job.objects.filter(status="cancelled").exists()
