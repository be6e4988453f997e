"""How the pages look: light and dark, on a desk and in a hand, nearly empty and overfull."""

import pytest
from selenium.webdriver.common.keys import Keys

from django_jobqueue.states import PauseKind
from tests.browser import scene
from tests.browser.chromium import LOOKS, Look
from tests.browser.colours import READABLE, luminance, seen
from tests.factories import ScheduleFactory

QUEUE = "/admin/django_jobqueue"
STATES = ".jobqueue-state"
NOTES = ".jobqueue-note, .jobqueue-page .help, .jobqueue-page dt, .jobqueue-problems li"
BUTTONS = ".jobqueue-button, .jobqueue-windows a"

LIGHT, DARK = (Look(theme, 1280, 900) for theme in ("light", "dark"))


def page_colour(browser):
    (body,) = seen(browser, "body")
    return body.ground


def unreadable(browser, *selectors):
    return [
        (it.text, round(it.contrast, 2))
        for selector in selectors
        for it in seen(browser, selector)
        if it.text and it.contrast < READABLE
    ]


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_every_page_can_be_read(address, browser, log_in, look):
    user = scene.operator()
    job = scene.ordinary_day(hours=3)
    extreme = scene.a_job_of_extremes()
    schedule = ScheduleFactory(name="end of month", type="reports.build")
    pages = (
        f"{QUEUE}/job/",
        f"{QUEUE}/job/?type={extreme.type}",
        f"{QUEUE}/job/{job.pk}/change/",
        f"{QUEUE}/job/{extreme.pk}/change/",
        f"{QUEUE}/job/{job.pk}/history/",
        f"{QUEUE}/insights/?window=24h",
        f"{QUEUE}/queuecontrol/",
        f"{QUEUE}/queuecontrol/add/?kind={PauseKind.TYPE}&name={extreme.type}",
        f"{QUEUE}/schedule/",
        f"{QUEUE}/schedule/{schedule.pk}/change/",
        f"{QUEUE}/workerprocess/",
        "/admin/",
    )
    browser.look(look)
    log_in(address, user)

    for page in pages:
        browser.open(address + page)

        assert browser.overflow() == 0, page
        assert unreadable(browser, STATES, NOTES, BUTTONS) == [], page
        assert (luminance(page_colour(browser)) < 0.1) == look.is_dark, page
        assert browser.complaints() == [], page


def test_pictures_and_states_have_other_colours_in_the_dark(address, browser, log_in):
    log_in(address, scene.operator())
    scene.ordinary_day(hours=3)
    found = []
    for look in (LIGHT, DARK):
        browser.look(look)
        browser.open(f"{address}{QUEUE}/insights/")
        bars = seen(browser, "svg rect.jobqueue-succeeded", "fill")
        words = seen(browser, "svg text", "fill")
        browser.open(f"{address}{QUEUE}/job/?status=failed")
        found.append((bars[0].colour, words[0].colour, seen(browser, STATES)[0].colour))
        assert bars[0].contrast > 3
        assert words[0].contrast > READABLE

    light, dark = found
    assert all(one != other for one, other in zip(light, dark, strict=True))


@pytest.mark.parametrize("chosen", ["light", "dark"])
def test_a_theme_chosen_in_the_admin_counts_more_than_the_systems(address, browser, log_in, chosen):
    log_in(address, scene.operator())
    scene.ordinary_day(hours=1)
    place = f"{address}{QUEUE}/job/?status=failed"
    wanted, other = (LIGHT, DARK) if chosen == "light" else (DARK, LIGHT)
    browser.look(wanted)
    browser.open(place)
    expected = (page_colour(browser), seen(browser, STATES)[0])

    browser.look(other)
    for _ in range(3):
        if browser.find("html").get_attribute("data-theme") != chosen:
            browser.find("button.theme-toggle").click()

    assert (page_colour(browser), seen(browser, STATES)[0]) == expected
    browser.open(f"{address}{QUEUE}/insights/")
    assert seen(browser, "svg rect.jobqueue-succeeded", "fill")[0].ground == expected[0]


def test_tables_and_pictures_say_what_they_show(address, browser, log_in):
    log_in(address, scene.operator())
    scene.ordinary_day(hours=3)

    browser.open(f"{address}{QUEUE}/insights/")

    pictures = browser.all("svg.jobqueue-chart")
    assert len(pictures) == 3
    for picture in pictures:
        named = picture.get_attribute("aria-labelledby").split()
        title, description = (
            browser.run("return document.getElementById(arguments[0]).textContent", name)
            for name in named
        )
        assert title
        assert description
    assert len(browser.all(".jobqueue-beside svg + details table")) == 3
    headings = browser.all(".jobqueue-page thead th")
    assert headings
    assert {heading.get_attribute("scope") for heading in headings} == {"col"}
    assert all(browser.run("return arguments[0].textContent.trim()", it) for it in headings)


def test_an_empty_queue_is_said_to_be_empty(address, browser, log_in):
    log_in(address, scene.operator())
    browser.look(LOOKS[-1])

    browser.open(f"{address}{QUEUE}/insights/")
    assert "There has been no job yet." in browser.text
    assert browser.overflow() == 0
    browser.open(f"{address}{QUEUE}/job/")
    assert "0 jobs" in browser.text
    browser.open(f"{address}{QUEUE}/queuecontrol/")
    assert "Nothing is paused" in browser.text


def test_a_confirmation_is_reached_and_given_by_the_keyboard(address, browser, log_in):
    log_in(address, scene.operator())
    job = scene.ordinary_day(hours=1)
    browser.open(f"{address}{QUEUE}/job/{job.pk}/change/")
    browser.follow(browser.button("Retry job"))

    for _ in range(60):
        browser.press(Keys.TAB)
        if browser.focused.text == "Yes, retry":
            break

    button = browser.focused
    assert button.text == "Yes, retry"
    assert button.value_of_css_property("outline-style") != "none"
    browser.follow_key(Keys.ENTER)
    assert "1 job waits to run again." in browser.text
