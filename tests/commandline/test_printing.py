"""Tables that fit, and text that no terminal obeys."""

import io

import pytest

from django_jobqueue.commandline.printing import Printer, columns_of, fit, fitted, printable, span


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (12, "12 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (172800, "2 d"),
    ],
)
def test_a_duration_has_one_unit(seconds, shown):
    assert span(seconds) == shown


def table(width, rows, expendable=()):
    stream = io.StringIO()
    printer = Printer(stream, as_json=False, width=width)
    printer.table(("A", "B"), rows, flexible={"B": 8}, expendable=expendable)
    return stream.getvalue().splitlines()


def test_without_a_terminal_nothing_is_cut():
    assert table(None, [["a", "b" * 300]])[1] == "a  " + "b" * 300


def test_a_column_with_nothing_in_it_is_left_out():
    assert table(None, [["a", "-"], ["b", ""]]) == ["A", "a", "b"]


def test_flexible_columns_give_way():
    lines = table(20, [["a" * 8, "b" * 30], ["a", "b"]])

    assert lines[1] == "aaaaaaaa  bbbbbbbbb…"
    assert max(map(len, lines)) == 20


def test_a_column_that_is_not_flexible_stays_whole_on_a_tiny_terminal():
    assert table(10, [["a" * 36, "b" * 30]])[1].startswith("a" * 36)


def test_an_expendable_column_is_left_out_only_where_giving_way_is_not_enough():
    rows = [["a" * 20, "b" * 30]]

    assert table(30, rows, expendable=["A"])[0].split() == ["A", "B"]
    assert table(29, rows, expendable=["A"]) == ["B", "b" * 28 + "…"]
    assert table(9, rows, expendable=["C"])[0].split() == ["A", "B"]


def test_the_widest_gives_way_first():
    assert fitted([10, 40, 20], [10, 8, 8], 50) == [10, 18, 18]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1)])
def test_wide_and_combining_characters_are_counted_as_a_terminal_does(text, columns):
    assert columns_of(text) == columns


def test_a_cut_between_wide_characters_still_fills_its_columns():
    assert columns_of(fit("日本語日本語", 6)) == 6


@pytest.mark.parametrize("evil", ["\x1b[31m", "\r", "\x9b2J", "\u202e", "\x00", "\x7f", "\n"])
def test_control_characters_are_spelt_out(evil):
    shown = printable(f"a{evil}b")

    assert evil not in shown
    assert shown.isprintable()


def test_a_stream_that_cannot_hold_a_character_gets_it_spelt_out():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")

    Printer(stream, as_json=False).line("日 done")
    stream.flush()

    assert raw.getvalue() == b"\\u65e5 done\n"


def test_json_is_ascii_so_that_every_stream_holds_it():
    stream = io.StringIO()

    Printer(stream, as_json=True).document({"name": "日\x1b"})

    assert stream.getvalue().isascii()
    assert "\x1b" not in stream.getvalue()
