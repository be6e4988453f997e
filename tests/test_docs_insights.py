"""The page on insights: its examples run, its tables are those of the code."""

import re

import pytest
from django.template import Context, Template

from django_jobqueue import insights
from django_jobqueue.admin.insights import WINDOWS
from django_jobqueue.insights import forecast, recent
from tests.factories import JobFactory
from tests.insights.rows import history, worker
from tests.pages import ROOT, example, examples, table_rows

PAGE = ROOT / "docs" / "insights.md"


@pytest.fixture
def queue(db):
    history(30, seconds=120, type="a")
    worker("a", slots=1)
    JobFactory(type="b")
    JobFactory(type="a")
    return JobFactory(type="a")


def test_the_first_example_prints_the_state_of_the_queue(queue, capsys):
    (code,) = [found.code for found in examples() if found.page == PAGE.name and not found.caption]

    exec(code, {})  # the page is ours

    printed = capsys.readouterr().out
    assert "no live worker runs b in default" in printed
    assert "30 120.0" in printed
    assert "a 240.0 live" in printed


def test_the_view_tells_when_a_job_is_done(queue):
    namespace = {}
    exec(example(PAGE.name, "reports/views.py"), namespace)

    told = namespace["progress"](queue.pk)

    assert told == {"status": "pending", "before": 1, "starts_in": 120.0, "done_in": 240.0}
    assert namespace["progress"](JobFactory(failed=True).pk) == {"status": "failed"}


def test_the_template_says_what_the_page_says(queue):
    template = re.search(r"```django\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]

    said = Template(template).render(Context({"job": queue})).split("\n")

    words = [row[1] for row in table_rows(PAGE, "The job")]
    assert said[1:4] == ["about 4 minutes", "1 job before it", "about 4 minutes"]
    assert any('"about 4 minutes"' in cell for cell in words)


def test_the_functions_of_the_page_are_those_of_the_module():
    rows = table_rows(PAGE, "Function")
    named = {name for row in rows for name in re.findall(r"(\w+)\(", row[0])}
    functions = {name for name in insights.__all__ if name.islower()}

    assert named == functions


def test_the_bases_of_the_page_are_those_of_the_code():
    assert [row[0] for row in table_rows(PAGE, "Basis")] == insights.Basis.values


def test_the_limits_of_the_page_are_those_of_the_code():
    text = " ".join(PAGE.read_text().split())

    assert f"at least {insights.ENOUGH_SAMPLES} samples" in text
    assert f"At most {forecast.MOST_AHEAD:,} ready jobs" in text
    assert f"the latest {recent.MOST_RECENT:,} finished jobs" in text
    assert f"last {insights.ALIVE_WITHIN.seconds} seconds" in text
    assert f"at most {insights.LONGEST_WINDOW.days}." in text
    for key in WINDOWS:
        assert f"`{key}`" in text
