"""The page on logging, against the code and the standard library."""

import json
import logging
import logging.config
from uuid import UUID

import pytest

from django_jobqueue.job_context import LOG_FIELDS, CurrentJob, running_job
from tests.log_events import LEVELS, events
from tests.pages import ROOT, example, table_rows

PAGE = ROOT / "docs" / "logging.md"
JOB = CurrentJob(UUID(int=7), "reports.build", 2, "host:1:1", "default")


def test_the_table_lists_every_event_with_its_level_and_logger():
    documented = {tuple(cell.strip("`") for cell in row) for row in table_rows(PAGE, "Event")}
    written = {(e.text, e.level, e.logger.removeprefix("django_jobqueue.")) for e in events()}

    assert documented == written
    assert len(written) > 50
    assert "varies" in LEVELS.values()


def test_no_two_events_share_a_text():
    texts = [event.text for event in events()]

    assert len(texts) == len(set(texts))


def test_the_attributes_of_a_line_are_those_listed():
    named = [attribute for attribute, _ in table_rows(PAGE, "Attribute")]

    assert named == [*LOG_FIELDS, "outcome"]


@pytest.fixture
def configured(capsys):
    """Configure logging as a site does; the loggers of the tests are put back after."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def configure(config):
        logging.config.dictConfig(config)

    yield configure
    root.handlers[:], root.level = before


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_the_example_writes_the_job_into_every_line(configured, capsys):
    namespace = {}
    exec(example("logging.md", "settings.py (LOGGING)"), namespace)  # the page is ours
    configured(namespace["LOGGING"])

    logging.getLogger("site.reports").info("outside")
    with running_job(JOB):
        logging.getLogger("site.reports").info("inside")

    outside, inside = lines(capsys)
    assert outside.endswith("INFO site.reports [- - -] outside")
    assert inside.endswith(f"INFO site.reports [{JOB.id} reports.build 2] inside")


def test_the_json_example_writes_one_object_a_line(configured, capsys):
    namespace = {"__name__": "mysite.logs"}
    exec(example("logging.md", "mysite/logs.py"), namespace)
    exec(example("logging.md", "settings.py (LOGGING)"), namespace)
    config = namespace["LOGGING"]
    config["formatters"]["json"] = {"()": namespace["JSONFormatter"]}
    config["handlers"]["console"]["formatter"] = "json"
    configured(config)

    with running_job(JOB):
        logging.getLogger("django_jobqueue.worker").error('two\nlines and "quotes"')

    (line,) = map(json.loads, lines(capsys))
    assert line["text"] == 'two\nlines and "quotes"'
    assert (line["job_id"], line["job_attempt"]) == (str(JOB.id), 2)


def test_the_example_of_the_current_job_tells_it():
    namespace = {"__name__": "reports.billing"}
    exec(example("logging.md", "reports/billing.py"), namespace)

    assert namespace["tag"]() == "outside a job"
    with running_job(JOB):
        assert namespace["tag"]() == f"reports.build {JOB.id}, attempt 2"
