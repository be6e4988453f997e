"""Array literals arrive at the server as the values they were made of."""

import math
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from django_jobqueue.database.arrays import array
from tests.marks import on_postgresql

pytestmark = [on_postgresql, pytest.mark.django_db]

through_the_server = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# PostgreSQL's text holds every character but NUL; half a surrogate pair is none.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
AWKWARD = st.text(st.sampled_from("\\\"{},' \t\n\rNULnulé\N{PILE OF POO}"))


def round_trip(values, element_type):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT %s::{element_type}[]", [array(values)])
        (found,) = cursor.fetchone()
    return found


@through_the_server
@given(values=st.lists(st.one_of(st.none(), TEXTS, AWKWARD)))
@example(values=["", "NULL", "null", None, '"', "\\", '\\"', "{}", "a,b", "{a,b}", " x ", "%s"])
@example(values=["\\N", "\\x00", "'", "''", "$1", "%(name)s", "%%", "\u2028", "\U0001f512"])
def test_texts(db, values):
    assert round_trip(values, "text") == values


@through_the_server
@given(values=st.lists(st.one_of(st.none(), st.uuids())))
def test_ids(db, values):
    assert round_trip(values, "uuid") == values
    assert all(type(value) is UUID for value in round_trip(values, "uuid") if value is not None)


@through_the_server
@given(values=st.lists(st.one_of(st.none(), st.integers(-(2**15), 2**15 - 1))))
def test_small_numbers(db, values):
    assert round_trip(values, "int2") == values


@through_the_server
@given(values=st.lists(st.one_of(st.none(), st.floats(allow_nan=False))))
@example(values=[0.1, -0.0, 1e-320, 1e308, math.inf, -math.inf, 5e-324, None])
def test_durations(db, values):
    assert round_trip(values, "float8") == values


@through_the_server
@given(values=st.lists(st.one_of(st.none(), st.booleans())))
def test_truth_values(db, values):
    assert round_trip(values, "boolean") == values


@pytest.mark.parametrize("element_type", ["text", "uuid", "int2", "float8", "boolean", "jsonb"])
def test_nothing_and_only_nulls_have_every_type(element_type):
    assert round_trip([], element_type) == []
    assert round_trip([None, None], element_type) == [None, None]


def test_any_iterable_will_do():
    assert array(text for text in "ab") == '{"a","b"}'
    assert array({}) == "{}"
