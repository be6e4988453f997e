import logging
import re
from decimal import Decimal
from fractions import Fraction

import pytest

from django_jobqueue.logs import get_logger
from django_jobqueue.masking import MASK
from tests.pages import ROOT


class Unspeakable:
    def __str__(self):
        raise RuntimeError("password=hunter2")

    __repr__ = __str__


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


@pytest.mark.parametrize(
    ("event", "argument", "line"),
    [
        ("%(a)s is %(b)d", {"a": "one", "b": 1}, "one is 1"),
        ("%(token)s of %(user)s", {"token": "hunter2", "user": "bob"}, f"{MASK} of bob"),
        ("%(error)s", {"error": ValueError("pin=hunter2")}, f"pin={MASK}"),
        ("%(all)r", {"all": {"password": "hunter2"}}, f"{{'password': '{MASK}'}}"),
        ("%s", {"token": "hunter2", "n": 1}, f"{{'token': '{MASK}', 'n': 1}}"),
        ("%r", {"nested": {"api_key": "hunter2"}}, f"{{'nested': {{'api_key': '{MASK}'}}}}"),
        ("%s", {"text": "password=hunter2"}, f"{{'text': 'password={MASK}'}}"),
        ("%s", {("a", 1): "x"}, "{('a', 1): 'x'}"),
        ("%s", {}, "{}"),
    ],
)
def test_a_mapping_is_masked_by_its_names_and_may_be_used_by_them(
    logger, caplog, event, argument, line
):
    logger.warning(event, argument)

    assert caplog.messages == [line]


@pytest.mark.parametrize(
    ("event", "number", "line"),
    [("%.2f", Decimal("1.5"), "1.50"), ("%d", True, "1"), ("%.1f", Fraction(1, 2), "0.5")],
)
def test_every_number_stays_a_number(logger, caplog, event, number, line):
    logger.warning(event, number)

    assert caplog.messages == [line]


@pytest.mark.parametrize("arguments", [(Unspeakable(),), ({"what": Unspeakable()},)])
def test_an_argument_without_a_text_of_its_own_is_named_by_its_class(logger, caplog, arguments):
    logger.warning("It failed: %s", *arguments)

    assert "that cannot be shown" in caplog.text
    assert "hunter2" not in caplog.text


def test_every_module_logs_through_the_masked_loggers():
    """The root's shortcuts, `logging.warning()` and its like, mask nothing either."""
    package = ROOT / "django_jobqueue"
    unmasked = re.compile(r"\bgetLogger\b|\blogging\.(debug|info|warning|error|exception|log)\(")

    found = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if unmasked.search(path.read_text())
    ]

    assert found == ["logs.py"]
    assert len(list(package.rglob("*.py"))) > 100
