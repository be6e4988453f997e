"""How an operator finds a job and sees what became of it, in a real browser."""

from selenium.webdriver.common.by import By

from django_jobqueue.models import Job
from tests.browser import scene

JOBS = "/admin/django_jobqueue/job/"
ROWS = "#result_list tbody tr"


def shown_ids(browser):
    return set(browser.values("input.action-select"))


def ids(**chosen):
    return {str(pk) for pk in Job.objects.filter(**chosen).values_list("pk", flat=True)}


def test_the_list_is_filtered_searched_and_paged(address, browser, log_in):
    user = scene.operator()
    job = scene.ordinary_day(hours=6)
    log_in(address, user)

    browser.follow(browser.link("Jobs"))
    assert len(browser.all(ROWS)) == 100
    assert {"failed", "cancelled", "stuck", "running", "pending"} <= {
        text.split(maxsplit=1)[1] for text in browser.texts(".jobqueue-state")
    }
    first_page = shown_ids(browser)
    browser.follow(".paginator a[href*='p=2']")
    assert shown_ids(browser).isdisjoint(first_page)

    browser.open(address + JOBS)
    browser.follow(browser.find("#changelist-filter").find_element(By.LINK_TEXT, "failed"))
    assert shown_ids(browser) == ids(status="failed")
    browser.follow(browser.find("#result_list").find_element(By.LINK_TEXT, "billing.sync"))
    assert shown_ids(browser) == ids(type="billing.sync")
    browser.follow(browser.find("#changelist-filter").find_element(By.LINK_TEXT, "running: stuck"))
    assert shown_ids(browser) == ids(type="billing.sync", status="running")

    for words in (f"auth.user:{job.subject_id}", str(job.pk), str(job.pk)[:20]):
        browser.open(address + JOBS)
        browser.fill("#searchbar", words)
        browser.follow("#changelist-search [type=submit]")
        assert str(job.pk) in shown_ids(browser), words
        assert len(shown_ids(browser)) < 30, words
    browser.fill("#searchbar", "nothing like it")
    browser.follow("#changelist-search [type=submit]")
    assert browser.all(ROWS) == []


def test_a_job_tells_its_story(address, browser, log_in):
    user = scene.operator()
    job = scene.ordinary_day(hours=1)
    log_in(address, user)
    browser.open(f"{address}{JOBS}?status=failed&type=billing.sync")

    browser.follow(f"a[href*='{job.pk}']")

    outcomes = browser.texts(".jobqueue-timeline .jobqueue-state")
    assert [outcome.split(maxsplit=1)[1] for outcome in outcomes] == [
        "#1 retry scheduled",
        "#2 retry scheduled",
        "#3 failed",
    ]
    assert "in push" not in browser.text
    browser.find(".jobqueue-entry:last-child summary").click()
    assert 'client.push(invoice, password="********")' in browser.text
    assert '"invoice": 7' in browser.text
    assert '"api_key": "********"' in browser.text
    assert scene.SECRET not in browser.source

    browser.follow(browser.link(f"auth.user {user.pk}"))
    assert browser.url == f"{address}/admin/auth/user/{user.pk}/change/"
    assert browser.find("#id_username").get_attribute("value") == user.username


def test_without_the_permission_nothing_that_a_job_carries_reaches_the_browser(
    address, browser, log_in
):
    viewer = scene.viewer()
    job = scene.ordinary_day(hours=1)
    told = (scene.SECRET, "row 7", "Traceback (most", "in push", '"invoice"', "api_key", "********")
    log_in(address, viewer)

    for place in (
        JOBS,
        f"{JOBS}?status=failed",
        f"{JOBS}{job.pk}/change/",
        f"{JOBS}{job.pk}/history/",
        "/admin/django_jobqueue/insights/?window=1h",
    ):
        browser.open(address + place)
        assert "ValueError" in browser.source or "history" in place or place == JOBS
        assert [words for words in told if words in browser.source] == [], place
        assert browser.all("select[name=action] option[value*=_jobs]") == []
        assert browser.all(".jobqueue-dangerous") == []


def test_the_insights_look_back_as_far_as_asked(address, browser, log_in):
    user = scene.operator()
    scene.ordinary_day(hours=30)
    log_in(address, user)

    browser.follow(browser.link("Insights"))
    assert browser.find(".jobqueue-windows [aria-current]").text == "7 days"
    seen = {}
    for window in ("1 hour", "24 hours", "30 days"):
        browser.follow(browser.link(window))
        assert browser.find(".jobqueue-windows [aria-current]").text == window
        browser.find(".jobqueue-beside summary").click()
        table = browser.find(".jobqueue-beside table")
        seen[window] = table.text
        assert table.is_displayed()
    assert len(set(seen.values())) == 3
    assert "No live worker runs 1 type that has waiting jobs: billing.sync." in browser.text
    assert "web-1:214" in browser.text

    browser.follow("#logout-form button")
    browser.open(address + JOBS)
    assert browser.find("#id_username").is_displayed()
