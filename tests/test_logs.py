import logging

import pytest

from django_jobqueue.logs import get_logger
from django_jobqueue.masking import MASK


class Unspeakable:
    def __str__(self):
        raise RuntimeError("password=hunter2")


@pytest.fixture
def logger():
    return get_logger("django_jobqueue.testing_logs")


def test_a_logger_has_its_modules_name_and_one_filter(logger):
    assert get_logger(logger.name) is logging.getLogger("django_jobqueue.testing_logs")
    assert len(logger.filters) == 1


def test_arguments_are_masked_and_the_events_text_stays(logger, caplog):
    error = ValueError("token=hunter2")

    logger.error("Job %s failed after %d s: %s %r", "reports.build", 7, error, {"pin": "hunter2"})

    (record,) = caplog.records
    assert record.msg == "Job %s failed after %d s: %s %r"
    assert record.getMessage() == (
        f"Job reports.build failed after 7 s: token={MASK} {{'pin': '{MASK}'}}"
    )


def test_a_traceback_leaves_as_masked_text_only(logger, caplog):
    try:
        try:
            int("api_key=hunter2")
        except ValueError as cause:
            raise ValueError("postgres://bob:hunter2@db/site") from cause
    except ValueError:
        logger.exception("It failed")

    (record,) = caplog.records
    assert record.exc_info is None
    assert "hunter2" not in caplog.text
    assert f"ValueError: postgres://bob:{MASK}@db/site" in record.exc_text
    assert "direct cause" in record.exc_text


def test_a_record_without_details_is_left_as_it_is(logger, caplog):
    logger.warning("The listener is back: %.1f s, 100 %% well", 1.25)

    assert caplog.messages == ["The listener is back: 1.2 s, 100 % well"]


def test_what_cannot_be_shown_never_costs_the_line(logger, caplog, monkeypatch):
    monkeypatch.setattr("django_jobqueue.logs.masked_text", lambda text: 1 / 0)

    logger.warning("It failed: %s", "hunter2")

    assert caplog.messages == ["It failed: %s (its details cannot be shown)"]


def test_an_argument_is_made_into_text_only_for_a_handler(logger):
    logger.debug("Nobody listens to %s", Unspeakable())
