"""Pictures: well-formed, labelled, without script or style, and true to their numbers."""

from xml.etree import ElementTree as ET

import pytest
from django.utils import translation

from django_jobqueue.charts import Bar, Column, bars, columns, nice_ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(picture):
    return ET.fromstring(picture)


def heights(root, kind):
    return [
        float(rect.get("height")) for rect in root.iter(f"{SVG}rect") if kind in rect.get("class")
    ]


@pytest.fixture
def two_columns():
    data = [
        Column("one", {"succeeded": 100, "failed": 50}, "a tip"),
        Column("two", {"succeeded": 50, "failed": 0}),
    ]
    return columns("test", "A <title>", "What & why", data)


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (4, [0, 1, 2, 3, 4]),
        (7, [0, 2, 4, 6, 8]),
        (100, [0, 50, 100]),
        (4116, [0, 2000, 4000, 6000]),
    ],
)
def test_ticks_are_round_and_few(highest, ticks):
    assert list(nice_ticks(highest)) == ticks


def test_a_picture_says_what_it_is(two_columns):
    root = drawn(two_columns)

    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "A <title>"
    assert root.find(f"{SVG}desc").text == "What & why"
    named = root.get("aria-labelledby").split()
    assert named == [root.find(f"{SVG}{name}").get("id") for name in ("title", "desc")]


def test_a_picture_has_no_script_and_no_style(two_columns):
    elements = list(drawn(two_columns).iter())

    assert {element.tag.removeprefix(SVG) for element in elements} <= {
        "svg", "title", "desc", "rect", "line", "text",
    }  # fmt: skip
    assert not any(name == "style" or name.startswith("on") for e in elements for name in e.attrib)


def test_columns_are_as_high_as_their_values(two_columns):
    root = drawn(two_columns)

    first, second = heights(root, "succeeded")
    (failed,) = heights(root, "failed")
    assert first == pytest.approx(2 * second, abs=0.05)
    assert failed == pytest.approx(second, abs=0.05)


def test_one_failure_among_thousands_is_seen():
    root = drawn(columns("test", "t", "d", [Column("", {"succeeded": 100_000, "failed": 1})]))

    assert heights(root, "failed") == [1.5]


def test_bars_are_as_long_as_their_values_and_carry_their_number():
    root = drawn(bars("test", "t", "d", [Bar("a", {"ready": 1200}), Bar("b", {"running": 600})]))

    widths = [float(rect.get("width")) for rect in root.iter(f"{SVG}rect")]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.05)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["a", "1,200", "b", "600"]


def test_nothing_goes_beyond_the_picture():
    data = [Bar("n" * 200, {"ready": 10**9, "running": 1})]
    for picture in (
        bars("test", "t", "d", data),
        columns("test", "t", "d", [Column("l", {"a": 10**9})] * 60),
        columns("test", "t", "d", []),
    ):
        root = drawn(picture)
        _, _, width, height = map(float, root.get("viewBox").split())
        for rect in root.iter(f"{SVG}rect"):
            x, y, wide, high = (float(rect.get(n)) for n in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= y + high <= height


def test_coordinates_are_numbers_in_every_language():
    with translation.override("de"):
        root = drawn(columns("test", "t", "d", [Column("", {"a": 1234})] * 7))

    assert all(float(rect.get("x")) >= 0 for rect in root.iter(f"{SVG}rect"))
    assert "1.500" in [text.text for text in root.iter(f"{SVG}text")]
