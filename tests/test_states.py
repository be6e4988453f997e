import pytest

from django_jobqueue.states import ErrorReport, error_class_of


def test_the_last_error_names_the_class_without_its_module():
    assert ErrorReport("app.errors.Broken", "as asked").last_error == "Broken: as asked"


def test_an_error_without_a_message_is_its_class():
    assert ErrorReport("builtins.ValueError", "").last_error == "ValueError"


def test_the_last_error_is_cut_to_its_column():
    assert len(ErrorReport("builtins.ValueError", "x" * 5_000).last_error) == 2_000


def test_a_class_without_a_message_is_cut_too():
    assert len(ErrorReport("C" * 5_000, "").last_error) == 2_000


@pytest.mark.parametrize(
    ("last_error", "name"),
    [
        ("", ""),
        ("ValueError", "ValueError"),
        ("ValueError: a: b", "ValueError"),
        ("error: unpack", "error"),
        ("no class at all", None),
        ("swordfish", None),
        ("two words: x", None),
        ("Key\nsecret: x", None),
        ("A" * 201, None),
    ],
)
def test_the_class_of_an_error_is_told_and_no_other_word(last_error, name):
    assert error_class_of(last_error) == name
