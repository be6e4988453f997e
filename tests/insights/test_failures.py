"""What failed jobs failed of."""

from importlib import import_module

import pytest

from django_jobqueue import insights
from django_jobqueue.insights.failures import MOST_TEXTS, TEXT_LENGTH, normalised
from django_jobqueue.models import Job
from django_jobqueue.states import error_class_of
from tests.insights.rows import finished, now

pytestmark = pytest.mark.django_db

module = import_module("django_jobqueue.insights.failures")


def failed(error, **values):
    return finished(1, failed=True, last_error=error, **values)


def test_failures_are_counted_by_the_class_of_their_error_the_commonest_first():
    for error in ("ValueError: 1", "ValueError: 2: and more", "KeyError", "OSError: disk"):
        failed(error)
    failed("OSError: tape")
    failed("OSError: tape")
    finished(1, last_error="TypeError: of an earlier attempt")

    found = insights.failures()

    assert [(group.exception_class, group.count) for group in found.classes[:2]] == [
        ("OSError", 3),
        ("ValueError", 2),
    ]
    assert {group.exception_class for group in found.classes} == {
        "OSError",
        "ValueError",
        "KeyError",
    }
    assert found.messages is None


def test_messages_that_differ_in_numbers_and_names_are_one_group():
    for number in range(5):
        failed(f"ValueError: row {number} of 'file-{number}.csv' is bad")
    failed("ValueError: something else")

    found = insights.failures(messages=True)

    assert [(group.message, group.count) for group in found.messages] == [
        ("ValueError: row <n> of <text> is bad", 5),
        ("ValueError: something else", 1),
    ]
    assert (found.read, found.cut) == (6, False)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("E: id 0b5e0d7e-2f8c-4c1b-9f64-0242ac120002 gone", "E: id <uuid> gone"),
        ("E: at 0x7f3a2b", "E: at <hex>"),
        ("E: commit 3f2a9c1d", "E: commit <hex>"),
        ('E: no "name" here', "E: no <text> here"),
        ("E: 10.0.0.1:5432 after 1,234.5 s", "E: <n> after <n> s"),
        ("E: first line\nsecond line 7", "E: first line"),
        ("E: a decade of facades", "E: a decade of facades"),
    ],
)
def test_what_varies_is_replaced(error, shown):
    assert normalised(error) == shown


def test_secrets_in_messages_are_masked():
    failed("ValueError: cannot log in with password=swordfish")

    (group,) = insights.failures(messages=True).messages

    assert "swordfish" not in group.message


ERRORS = [
    *("", "ValueError", "ValueError: 1", "pkg.Error: a: b", "E\nsecret", "E\n", "E", "E:"),
    *("lost", "lost: again", "1: one", "it is lost", "it: lost", "Ünit: x", " E: x", "é"),
    *("A" * 200, "A" * 201, "A" * 200 + ": x", "A" * 201 + ": x", ":", "::", "a b: c", "a\tb: c"),
]


@pytest.mark.parametrize("error", ERRORS)
def test_the_class_is_the_one_that_everything_else_tells(error):
    failed(error)

    (group,) = insights.failures().classes

    assert group.exception_class == error_class_of(error)


def test_texts_that_name_no_class_are_one_group():
    for number in range(5):
        failed(f"order {number} for secret")

    (group,) = insights.failures().classes

    assert (group.exception_class, group.count) == (None, 5)


HOSTILE = {
    "fields": lambda number: ", ".join(f"field{n}={number * n}" for n in range(300))[:2_000],
    "names": lambda number: f"E: {number:x} " + "api key: " * 200,
    "words": lambda number: "".join(chr(97 + (number * 7 + n * n) % 26) for n in range(2_000)),
    "quotes": lambda number: f"{chr(0x4E00 + number)} " + "'\"" * 900,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_cost_no_more_masking_than_the_most_frequent_beginnings(monkeypatch, kind):
    at = now()
    columns = {"type": "a", "status": "failed", "created_at": at, "ready_at": at}
    Job.objects.bulk_create(
        Job(**columns, finished_at=at, last_error=HOSTILE[kind](number)) for number in range(1_000)
    )
    lengths = []
    masked_beginning = module.masked_beginning

    def measured(text, length):
        lengths.append(len(text))
        return masked_beginning(text, length)

    monkeypatch.setattr(module, "masked_beginning", measured)
    found = insights.failures(messages=True)

    assert 0 < len(lengths) <= MOST_TEXTS
    assert max(lengths) <= TEXT_LENGTH + 1
    assert found.read == 1_000


def test_of_more_texts_than_are_searched_the_most_frequent_are_told(monkeypatch):
    monkeypatch.setattr(module, "MOST_TEXTS", 2)
    for letter, times in (("a", 1), ("b", 3), ("c", 2)):
        for number in range(times):
            failed(f"E: {letter} {number}")

    found = insights.failures(messages=True)

    assert [(group.message, group.count) for group in found.messages] == [
        ("E: b <n>", 3),
        ("E: c <n>", 2),
    ]
    assert (found.read, found.cut) == (6, True)


def test_half_a_secret_at_the_end_of_what_is_read_is_left_out():
    failed("E: " + "x" * (TEXT_LENGTH - 40) + " https://user:swordfish-swordfish-swordfish@host/")

    (group,) = insights.failures(messages=True).messages

    assert "swordfish" not in group.message
    assert group.message.endswith("…")
