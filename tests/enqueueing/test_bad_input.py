import math
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from django_jobqueue import JobRequest
from django_jobqueue.exceptions import EnqueueError, InvalidJob, InvalidPayload
from django_jobqueue.models import Job

pytestmark = pytest.mark.django_db

HUGE = 10**5_000
NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 (the mistake)
AWARE = datetime(2030, 1, 1, tzinfo=UTC)


class Secretive:
    def __repr__(self):
        raise RuntimeError("no repr")


def text_cases(name, length, make):
    """Bad values of a text argument, and what the message says."""
    long = "x" * (length + 1)
    return [
        (make(7), f"{name} is 7; expected a string."),
        (make(b"bytes"), f"{name} is b'bytes'; expected a string."),
        (make(["a"]), f"{name} is ['a']; expected a string."),
        (make(True), f"{name} is True; expected a string."),
        (make(long), f"{name} has {length + 1} characters ('xxxxxxxxxx"),
        (make(long), f"expected at most {length}."),
        (make("a\0b"), f"{name} contains a NUL character"),
        (make("a\ud800"), f"{name} contains the lone surrogate '\\ud800'"),
    ]


CASES = [
    *text_cases("type", 200, lambda value: {"type": value}),
    *text_cases("queue", 100, lambda value: {"queue": value}),
    *text_cases("reason", 200, lambda value: {"reason": value}),
    *text_cases("dedup_key", 400, lambda value: {"dedup_key": value}),
    *text_cases("org_id", 100, lambda value: {"org_id": value}),
    *text_cases("subject type", 100, lambda value: {"subject": (value, "7")}),
    *[
        case
        for case in text_cases("subject id", 200, lambda value: {"subject": ("report", value)})
        if case[0] != {"subject": ("report", 7)} or isinstance(case[0]["subject"][1], bool)
    ],
    ({"type": None}, "type is None; expected a string."),
    ({"type": ""}, "type is empty; expected 1 to 200 characters."),
    ({"queue": None}, "queue is None; expected a string."),
    ({"queue": ""}, "queue is empty; expected 1 to 100 characters."),
    ({"reason": None}, "reason is None; expected a string."),
    ({"dedup_key": ""}, "dedup_key is empty; expected 1 to 400 characters."),
    ({"org_id": ""}, "org_id is empty; expected 1 to 100 characters."),
    ({"subject": ("", 7)}, "subject type is empty"),
    ({"subject": ("report", "")}, "subject id is empty"),
    ({"subject": ("report", None)}, "subject id is None"),
    ({"subject": ("report", 7.5)}, "subject id is 7.5"),
    ({"subject": (7, "report")}, "subject type is 7"),
    ({"subject": "report"}, "subject is 'report'; expected a pair such as"),
    ({"subject": "ab"}, "subject is 'ab'; expected a pair such as"),
    ({"subject": ("report",)}, "subject is ('report',); expected a pair"),
    ({"subject": ("report", 7, 8)}, "subject is ('report', 7, 8); expected a pair"),
    ({"subject": 7}, "subject is 7; expected a pair"),
    ({"subject": {"report": 7}}, "subject is {'report': 7}; expected a pair"),
    ({"priority": 2**15}, "priority is 32768; expected a whole number from -32768 to 32767."),
    ({"priority": -(2**15) - 1}, "priority is -32769; expected"),
    ({"priority": 1.0}, "priority is 1.0; expected"),
    ({"priority": math.nan}, "priority is nan; expected"),
    ({"priority": "1"}, "priority is '1'; expected"),
    ({"priority": None}, "priority is None; expected"),
    ({"priority": True}, "priority is True; expected"),
    ({"delay": math.nan}, "delay is nan; expected seconds or a timedelta from 0 to 3650 days."),
    ({"delay": math.inf}, "delay is inf; expected"),
    ({"delay": -1}, "delay is -1; expected"),
    ({"delay": -0.001}, "delay is -0.001; expected"),
    ({"delay": timedelta(seconds=-1)}, "delay is datetime.timedelta(days=-1"),
    ({"delay": timedelta(days=3651)}, "delay is datetime.timedelta(days=3651); expected"),
    ({"delay": 1e300}, "delay is 1e+300; expected"),
    ({"delay": "60"}, "delay is '60'; expected"),
    ({"delay": True}, "delay is True; expected"),
    ({"delay": AWARE}, "delay is datetime.datetime(2030"),
    (
        {"delay": 1, "scheduled_for": AWARE},
        "delay and scheduled_for are both given; expected one of them.",
    ),
    (
        {"scheduled_for": NAIVE},
        "2030, 1, 1, 0, 0); expected an aware datetime (USE_TZ is on).",
    ),
    ({"scheduled_for": AWARE.date()}, "scheduled_for is datetime.date(2030, 1, 1); expected"),
    ({"scheduled_for": "2030-01-01"}, "scheduled_for is '2030-01-01'; expected a datetime."),
    ({"scheduled_for": 60}, "scheduled_for is 60; expected a datetime."),
    ({"skip_dedup": "no"}, "skip_dedup is 'no'; expected True or False."),
    ({"skip_dedup": 1}, "skip_dedup is 1; expected True or False."),
    ({"skip_dedup": None}, "skip_dedup is None; expected True or False."),
]
# Arguments that cannot even be shown.
UNSHOWABLE = [
    {"type": HUGE},
    {"type": Secretive()},
    {"priority": HUGE},
    {"delay": HUGE},
    {"subject": ("report", HUGE)},
    {"subject": HUGE},
    {"scheduled_for": HUGE},
    {"skip_dedup": Secretive()},
]
# Instants whose date in UTC is out of what a database or Python can name.
FAR = [
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
]
PAYLOADS = [
    ([], "payload is of type list; expected a JSON object (dict)."),
    ("{}", "payload is of type str; expected a JSON object (dict)."),
    (7, "payload is of type int; expected a JSON object (dict)."),
    (False, "payload is of type bool; expected a JSON object (dict)."),
    ({"a": {"b": [1, math.nan]}}, "payload.a.b[1] is nan"),
    ({"a": "\0"}, "payload.a contains a NUL character"),
    ({"a": "\ud800"}, "payload.a contains the lone surrogate"),
    ({7: "a"}, "payload has the key 7; JSON keys are strings"),
    ({"a": HUGE}, "payload.a is an integer of over 640 digits"),
    ({"a": {1}}, "payload.a is of type set, which JSON cannot hold"),
    ({"a": UUID(int=7)}, "payload.a is of type UUID, which JSON cannot hold"),
]


def ident(value):
    return str(value)[:60] if isinstance(value, str) else ""


@pytest.fixture
def refused(django_assert_num_queries):
    """Enqueue must be refused, before any query and without a row; return the message."""

    def enqueue(error_class=InvalidJob, **arguments):
        job_type = arguments.pop("type", "test.echo")
        with django_assert_num_queries(0), pytest.raises(error_class) as error:
            Job.objects.enqueue(job_type, **arguments)
        assert isinstance(error.value, EnqueueError)
        assert not Job.objects.exists()
        return str(error.value)

    return enqueue


@pytest.mark.parametrize(("arguments", "message"), CASES, ids=ident)
def test_a_bad_argument_is_refused_by_name_before_any_query(refused, arguments, message):
    assert message in refused(**arguments)


@pytest.mark.parametrize("arguments", UNSHOWABLE, ids=lambda arguments: next(iter(arguments)))
def test_an_argument_that_cannot_be_shown_is_refused_all_the_same(refused, arguments):
    assert next(iter(arguments)) in refused(**arguments)


def test_a_message_stays_short_whatever_the_argument(refused):
    assert len(refused(type=["x" * 100] * 10_000)) < 1_000


@pytest.mark.parametrize("moment", FAR, ids=str)
def test_an_instant_that_no_database_can_give_back_is_refused(refused, moment):
    assert "scheduled_for" in refused(scheduled_for=moment)


def test_an_aware_time_is_refused_where_the_site_has_naive_ones(refused, settings):
    settings.USE_TZ = False

    assert "expected a naive one (USE_TZ is off)" in refused(scheduled_for=AWARE)


@pytest.mark.parametrize(("payload", "message"), PAYLOADS, ids=ident)
def test_a_bad_payload_is_refused_with_its_path_before_any_query(refused, payload, message):
    assert refused(InvalidPayload, payload=payload).startswith(message)


@pytest.mark.parametrize(
    ("payload", "size"),
    [({"a": "x" * 93}, 101), ({"a": "ü" * 47}, 102), ({"a": '"' * 47}, 102)],
)
def test_a_payload_is_measured_in_bytes_as_they_are_stored(refused, settings, payload, size):
    settings.JOBQUEUE = {"MAX_PAYLOAD_BYTES": 100}

    message = refused(InvalidPayload, payload=payload)

    assert message.startswith(f"payload has {size} bytes; expected at most 100.")
    assert "raise MAX_PAYLOAD_BYTES" in message


def test_a_payload_of_just_the_limit_is_taken(settings):
    settings.JOBQUEUE = {"MAX_PAYLOAD_BYTES": 100}

    assert Job.objects.enqueue("test.echo", {"a": "x" * 92}).pk


def test_an_unknown_option_is_a_type_error(django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(TypeError, match="prio"):
        Job.objects.enqueue("test.echo", prio=3)


@pytest.mark.parametrize(
    ("request_", "error_class", "message"),
    [
        (JobRequest("test.echo", queue=""), InvalidJob, "Request 2: queue is empty"),
        (
            JobRequest("test.echo", {"a": {1}}),
            InvalidPayload,
            "Request 2: payload.a is of type set",
        ),
        (("test.echo", {}), InvalidJob, "Request 2 is ('test.echo', {}); expected a JobRequest."),
        (None, InvalidJob, "Request 2 is None; expected a JobRequest."),
    ],
)
def test_a_bad_request_among_many_is_named_by_its_index(
    django_assert_num_queries, request_, error_class, message
):
    good = JobRequest("test.echo")

    with django_assert_num_queries(0), pytest.raises(error_class) as error:
        Job.objects.enqueue_many([good, good, request_, good])

    assert type(error.value) is error_class
    assert str(error.value).startswith(message)
    assert not Job.objects.exists()


def test_an_unknown_option_is_named_with_those_there_are():
    with pytest.raises(TypeError) as caught:
        Job.objects.enqueue("test.echo", {}, foo=1)

    assert str(caught.value) == (
        "enqueue() got an unexpected option 'foo'; it takes queue, priority, subject, dedup_key, "
        "skip_dedup, scheduled_for, delay, reason, org_id."
    )
    assert not Job.objects.exists()
