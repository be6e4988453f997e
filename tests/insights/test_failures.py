"""What failed jobs failed of."""

import pytest

from django_jobqueue import insights
from django_jobqueue.insights.failures import normalised
from tests.insights.rows import finished

pytestmark = pytest.mark.django_db


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
