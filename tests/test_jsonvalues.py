import enum
import json
import math
from collections import OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_jobqueue.jsonvalues import (
    MAX_DEPTH,
    NotJSON,
    decode,
    encode,
    json_copy,
    storable_text,
    text_problem,
)
from django_jobqueue.models import Job
from tests.claims import claimed, success

HUGE = 10**5_000

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
# Floats from here on are whole numbers, and PostgreSQL gives them back as such.
WHOLE = 2.0**53
scalars = (
    st.none() | st.booleans() | st.integers(-(10**600), 10**600) | st.floats(-WHOLE, WHOLE) | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)
payloads = st.dictionaries(texts, values, max_size=5)
anything = st.recursive(
    scalars
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.sampled_from([10**700, -(10**700), math.nan, object(), {1}]),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters()) | st.integers() | st.none(), inner)
    ),
    max_leaves=10,
)


class Colour(enum.StrEnum):
    RED = "red"


class OldColour(str, enum.Enum):  # noqa: UP042 (the kind before StrEnum)
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Celsius(float):
    pass


class Shouting(str):
    __slots__ = ()

    def __str__(self):
        return "SHOUTED"


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_large_float_comes_back_as_a_number_that_is_the_same_float(db, value):
    job = Job.objects.enqueue("test.echo", {"n": value})

    assert float(Job.objects.get(pk=job.pk).payload["n"]) == value


def nested(depth, value=0):
    for _ in range(depth):
        value = [value]
    return value


@given(value=values)
def test_a_json_value_is_copied_unchanged(value):
    copy = json_copy(value, "value")

    assert copy == value
    assert json.loads(encode(copy)) == value


# The database is only read and written: examples need no fresh one.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=payloads, result=values)
def test_what_passes_comes_back_from_the_database_unchanged(db, payload, result):
    enqueued = Job.objects.enqueue("test.echo", payload)
    (job,) = claimed()
    Job.objects.settle([success(job, json_copy(result, "result"))])

    stored = Job.objects.get(pk=enqueued.pk)
    assert enqueued.payload == job.payload == stored.payload == payload
    assert stored.result == result


@given(value=anything)
def test_any_value_is_copied_or_refused_with_its_path(value):
    try:
        copy = json_copy(value, "value")
    except NotJSON as error:
        assert str(error).startswith("value")  # noqa: PT017 (either ending is fine)
    else:
        encode(copy).encode()


@pytest.mark.parametrize(
    ("value", "copy", "kind"),
    [
        (Colour.RED, "red", str),
        (OldColour.RED, "red", str),
        (Shouting("quiet"), "quiet", str),
        (Level.HIGH, 3, int),
        (Celsius(1.5), 1.5, float),
        ((1, (2, 3)), [1, [2, 3]], list),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}, dict),
        (MappingProxyType({"a": 1}), {"a": 1}, dict),
        ({Colour.RED: 1}, {"red": 1}, dict),
        (True, True, bool),
        (None, None, type(None)),
    ],
)
def test_subclasses_become_plain_json_types(value, copy, kind):
    plain = json_copy(value, "value")

    assert plain == copy
    assert type(plain) is kind
    if kind is dict:
        assert all(type(key) is str for key in plain)


def test_a_copy_shares_nothing_with_its_original():
    original = {"list": [{"n": 1}]}

    copy = json_copy(original, "value")
    original["list"][0]["n"] = 2

    assert copy == {"list": [{"n": 1}]}


@given(value=values)
def test_what_was_encoded_is_decoded(value):
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    "text", ["9" * 5_000, '{"a": [' + "9" * 5_000 + "]}", "[" * 200_000, '{"a":', ""]
)
def test_what_python_cannot_read_is_none(text):
    assert decode(text) is None


def self_containing():
    value = {}
    value["me"] = value
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": math.nan}, "value.a is nan, which JSON has no number for; use null."),
        ({"a": [1, math.inf]}, "value.a[1] is inf, which JSON has no number for; use null."),
        ([{"b": -math.inf}], "value[0].b is -inf, which JSON has no number for; use null."),
        ({"a": "x\0y"}, "value.a contains a NUL character, which a database cannot store"),
        ({"a": ["\ud800"]}, "value.a[0] contains the lone surrogate '\\ud800'"),
        ({"a": "\udfff"}, "value.a contains the lone surrogate '\\udfff'"),
        ({"a": {1: 2}}, "value.a has the key 1; JSON keys are strings, so use a string."),
        ({None: 1}, "value has the key None; JSON keys are strings, so use a string."),
        ({"a": {"x\0": 2}}, "value.a has the key 'x\\x00', which contains a NUL character"),
        ({"\ud800": 2}, "value has the key '\\ud800', which contains the lone surrogate"),
        ({"a": HUGE}, "value.a is an integer of over 640 digits; store it as a string."),
        ({"a": -HUGE}, "value.a is an integer of over 640 digits; store it as a string."),
        ({"a": {1, 2}}, "value.a is of type set, which JSON cannot hold"),
        ({"a": b"bytes"}, "value.a is of type bytes, which JSON cannot hold"),
        ({"a": Decimal("1.5")}, "value.a is of type Decimal, which JSON cannot hold"),
        (
            {"a": datetime(2026, 1, 1, tzinfo=UTC)},
            "value.a is of type datetime, which JSON cannot hold",
        ),
        ({"a": date(2026, 1, 1)}, "value.a is of type date, which JSON cannot hold"),
        ({"a": UUID(int=7)}, "value.a is of type UUID, which JSON cannot hold"),
        ({"a": (n for n in "ab")}, "value.a is of type generator, which JSON cannot hold"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_json_or_a_database_cannot_hold_is_refused_with_its_path(value, message):
    with pytest.raises(NotJSON) as refused:
        json_copy(value, "value")

    assert str(refused.value).startswith(message)


def test_a_key_too_long_to_be_written_out_is_refused_like_any_other():
    with pytest.raises(NotJSON, match="value has the key"):
        json_copy({HUGE: 1}, "value")


@pytest.mark.parametrize(
    "value",
    [nested(MAX_DEPTH + 1), nested(100_000), {"a": nested(MAX_DEPTH)}, self_containing()],
    ids=["a level", "100,000 levels", "in an object", "itself"],
)
def test_too_deep_nesting_is_refused(value):
    with pytest.raises(NotJSON, match=f"nested deeper than {MAX_DEPTH} levels; flatten it"):
        json_copy(value, "value")


def test_the_deepest_nesting_is_stored(db):
    payload = {"a": nested(MAX_DEPTH - 1)}

    assert Job.objects.get(pk=Job.objects.enqueue("test.echo", payload).pk).payload == payload


@pytest.mark.parametrize("value", [2**2126 - 1, -(2**2126) + 1, 10**639])
def test_the_longest_integers_are_stored(db, value):
    job = Job.objects.enqueue("test.echo", {"n": value})

    assert Job.objects.get(pk=job.pk).payload == {"n": value}


@given(text=st.text(st.characters()))
def test_any_text_can_be_made_storable(text):
    stored = storable_text(text)

    assert text_problem(stored) is None
    stored.encode()
    assert len(stored) == len(text)
    if text_problem(text) is None:
        assert stored == text


def test_what_cannot_be_stored_is_replaced_visibly():
    assert storable_text("a\0b\udc80") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
