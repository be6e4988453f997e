import itertools
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from types import SimpleNamespace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_jobqueue import RateLimitError
from django_jobqueue.exceptions import JobTimeoutError
from django_jobqueue.policy import RateLimit, classify_rate_limit, parse_retry_after
from django_jobqueue.policy.rate_limit import LONGEST_WAIT
from tests.policy import shapes

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
IN_A_MINUTE = "Sun, 01 Mar 2026 12:01:00 GMT"
MINUTE = timedelta(minutes=1)


class TestParseRetryAfter:
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("120", 120),
            (" 7 ", 7),
            ("0", 0),
            (b"120", 120),
            (120, 120),
            (1.5, 1.5),
            (timedelta(seconds=9), 9),
            (IN_A_MINUTE, 60),
            ("Sunday, 01-Mar-26 12:01:00 GMT", 60),
            ("Sun Mar  1 12:01:00 2026", 60),
            ("Sun, 01 Mar 2026 11:59:00 GMT", 0),
        ],
    )
    def test_seconds_and_dates_are_understood(self, value, seconds):
        assert parse_retry_after(value, now=NOW) == timedelta(seconds=seconds)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            "",
            " ",
            "soon",
            "-5",
            "+5",
            "1.5",
            "1e3",
            "0x10",
            "1_000",
            "12 s",
            "٣",
            "5, 5",
            "nan",
            "inf",
            -1,
            -0.5,
            float("nan"),
            float("inf"),
            True,
            False,
            timedelta(seconds=-1),
            [],
            ["5"],
            {},
            pytest.param(object(), id="object"),
            "2026-03-01T12:01:00Z",
            "Sun, 01 Mar 2026 12:01:00 +0100",
            "Sun, 01 Mar 2026 25:01:00 GMT",
            "Sun, 31 Feb 2026 12:01:00 GMT",
            "Sun, 01 Xyz 2026 12:01:00 GMT",
            "1 Mar 2026",
        ],
        ids=repr,
    )
    def test_anything_else_is_none_and_never_zero(self, value):
        assert parse_retry_after(value, now=NOW) is None

    def test_a_date_needs_a_clock(self):
        assert parse_retry_after(IN_A_MINUTE, now=None) is None
        assert parse_retry_after("60", now=None) == MINUTE

    @pytest.mark.parametrize(
        "value",
        ["9" * 5_000, 10**400, 1e300, "Fri, 31 Dec 9999 23:59:59 GMT"],
        ids=["digits", "int", "float", "date"],
    )
    def test_an_absurd_wait_is_cut(self, value):
        assert parse_retry_after(value, now=NOW) == LONGEST_WAIT

    @settings(deadline=None)
    @given(st.integers(0, int(LONGEST_WAIT.total_seconds())))
    def test_a_date_means_the_same_as_its_seconds(self, seconds):
        date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)

        assert parse_retry_after(date, now=NOW) == parse_retry_after(str(seconds), now=NOW)

    @settings(deadline=None)
    @given(st.one_of(st.text(), st.binary(), st.floats(), st.integers(), st.timedeltas()))
    def test_it_never_raises_and_never_leaves_its_bounds(self, value):
        wait = parse_retry_after(value, now=NOW)

        assert wait is None or timedelta(0) <= wait <= LONGEST_WAIT

    @settings(deadline=None)
    @given(st.text())
    def test_text_is_a_wait_exactly_when_it_is_digits(self, text):
        text = text.strip(" \t")
        digits = text.isascii() and text.isdigit()

        assert (parse_retry_after(text, now=NOW) is not None) == digits


LIMITED = [
    shapes.requests_like(429, **{"Retry-After": "60"}),
    shapes.requests_like(503, **{"rEtRy-aFtEr": "60"}),
    shapes.requests_like(429, **{"Retry-After": IN_A_MINUTE}),
    shapes.httpx_like(429, ("Date", "today"), ("retry-after", "60")),
    shapes.httpx_like(429, (b"Retry-After", b"60")),
    shapes.aiohttp_like(429, ("Retry-After", "60")),
    shapes.openai_like(429, ("retry-after", "60"), code="rate_limit_exceeded"),
    shapes.openai_like(529, ("retry-after", "60")),
    shapes.botocore_like(429, "TooManyRequestsException", **{"retry-after": "60"}),
    shapes.botocore_like(503, "SlowDown", **{"retry-after": "60"}),
    shapes.botocore_like(400, "ThrottlingException", **{"retry-after": "60"}),
    shapes.urllib_real(429, retry_after="60"),
    shapes.urllib_real(503, Retry_After=IN_A_MINUTE),
    shapes.error(status_code=429, retry_after=60),
    shapes.error(status="429", retry_after="60"),
    shapes.error(code=HTTPStatus.TOO_MANY_REQUESTS, retry_after=MINUTE),
    shapes.error(http_status=503, headers={"Retry-After": ["60", "90"]}),
    shapes.error(metadata={"http_status_code": 429, "headers": [("Retry-After", "60")]}),
    shapes.error(response=SimpleNamespace(status=429, headers={"RETRY-AFTER": "60"})),
    shapes.error("ThrottlingException", status_code=400, retry_after=60),
    shapes.error("RateLimitExceededException", status=403, headers={"retry-after": "60"}),
    RateLimitError(retry_after=60),
    RateLimitError(retry_after="60"),
]
NOT_LIMITED = [
    ValueError("429"),
    shapes.requests_like(500, **{"Retry-After": "60"}),
    shapes.requests_like(404),
    shapes.httpx_like(502),
    shapes.aiohttp_like(400, ("Retry-After", "60")),
    shapes.openai_like(401, code="invalid_api_key"),
    shapes.botocore_like(400, "ValidationException"),
    shapes.urllib_real(500, retry_after="60"),
    shapes.error(response=None, status_code=None, headers=None),
    shapes.error(status_code=True, code="1", status=print),
    shapes.error(retry_after=60),
    JobTimeoutError(uuid4(), "reports.build", MINUTE),
]


def shape(error):
    return type(error).__name__


class TestClassifyRateLimit:
    @pytest.mark.parametrize("error", LIMITED, ids=shape)
    def test_it_knows_a_rate_limit_and_its_wait(self, error):
        assert classify_rate_limit(error, now=NOW) == RateLimit(MINUTE)

    @pytest.mark.parametrize("error", NOT_LIMITED, ids=shape)
    def test_it_knows_what_is_none(self, error):
        assert classify_rate_limit(error, now=NOW) is None

    @pytest.mark.parametrize(
        "error",
        [
            RateLimitError(),
            RateLimitError(retry_after=-1),
            RateLimitError(retry_after="soon"),
            RateLimitError(retry_after=float("nan")),
            shapes.requests_like(429),
            shapes.requests_like(429, **{"Retry-After": "soon"}),
            shapes.aiohttp_like(429),
            shapes.error(status=429, headers=None),
            shapes.error(status=429, headers=object()),
            shapes.error(status=429, headers={None: "60"}),
            shapes.error(status=429, headers={"Retry-After": []}),
            shapes.botocore_like(400, "Throttling"),
        ],
        ids=shape,
    )
    def test_a_wait_that_was_not_said_is_none(self, error):
        assert classify_rate_limit(error, now=NOW) == RateLimit(None)

    def test_a_wait_that_cannot_be_read_gives_way_to_the_next(self):
        error = shapes.openai_like(429, ("retry-after", "60"))
        error.retry_after = "soon"

        assert classify_rate_limit(error) == RateLimit(MINUTE)

    def test_a_timeout_is_none_whatever_it_carries(self):
        error = JobTimeoutError(uuid4(), "reports.build", MINUTE)
        error.status_code = 429

        assert classify_rate_limit(error) is None

    def test_exceptions_of_requests_are_understood(self):
        requests = pytest.importorskip("requests")
        response = requests.Response()
        response.status_code = 429
        response.headers["Retry-After"] = "60"

        with pytest.raises(requests.HTTPError) as caught:
            response.raise_for_status()

        assert classify_rate_limit(caught.value) == RateLimit(MINUTE)

    def test_exceptions_around_a_django_response_are_understood(self):
        from django.http import HttpResponse

        response = HttpResponse(status=429, headers={"Retry-After": "60"})

        assert classify_rate_limit(shapes.error(response=response)) == RateLimit(MINUTE)


class Unanswering:
    """Every attribute raises, even its class."""

    def __init__(self, raised):
        object.__setattr__(self, "raised", raised)

    def __getattribute__(self, name):
        raise object.__getattribute__(self, "raised")


class Endless:
    """Every attribute, item and call is itself; what it lists has no end."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self

    def __call__(self, *args):
        return itertools.repeat((self, self))


class Liar(str):
    """Text whose methods raise."""

    __slots__ = ()
    lower = replace = strip = __str__ = __eq__ = property(lambda self: 1 / 0)
    __hash__ = None


class Number(int):
    """A number whose comparisons raise."""

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __hash__ = __int__ = __float__ = property(
        lambda self: 1 / 0
    )


RAISED = [
    AttributeError("no"),
    KeyError("file"),
    RuntimeError("not set"),
    RecursionError("too deep"),
    SystemExit(1),
    KeyboardInterrupt(),
    GeneratorExit(),
]
ATTRIBUTES = [
    "status_code",
    "status",
    "code",
    "http_status",
    "response",
    "metadata",
    "headers",
    "retry_after",
    "ResponseMetadata",
    "Error",
]
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([400, 429, 500, 503, 529, "429", "60", "Throttling"]),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.timedeltas(),
    st.just(Liar("429")),
    st.just(Number(429)),
    st.just(Endless()),
    st.builds(Unanswering, st.sampled_from(RAISED)),
)
KEYS = st.one_of(
    st.sampled_from(
        [*ATTRIBUTES, "HTTPStatusCode", "HTTPHeaders", "Code", "Retry-After", "retry-after"]
    ),
    st.none(),
    st.integers(),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(st.tuples(KEYS, inner), max_size=3),
        st.dictionaries(KEYS, inner, max_size=4),
        st.builds(
            lambda made: SimpleNamespace(**made),
            st.dictionaries(st.sampled_from(ATTRIBUTES), inner, max_size=4),
        ),
    ),
    max_leaves=12,
)


class TestClassifyNastyObjects:
    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES))
    def test_it_never_raises_and_keeps_its_bounds(self, attributes):
        limit = classify_rate_limit(shapes.error(**attributes), now=NOW)

        assert (
            limit is None
            or limit.retry_after is None
            or (timedelta(0) <= limit.retry_after <= LONGEST_WAIT)
        )

    @pytest.mark.parametrize("raised", RAISED, ids=shape)
    @pytest.mark.parametrize("name", ["status_code", "response", "headers", "retry_after", "code"])
    def test_a_getter_that_raises_does_not_hide_the_others(self, name, raised):
        def getter(self):
            raise raised

        error = type("Broken", (Exception,), {name: property(getter)})()
        error.status = 429

        assert classify_rate_limit(error) == RateLimit(None)

    @pytest.mark.parametrize("raised", RAISED, ids=shape)
    def test_a_response_that_answers_nothing_is_left_aside(self, raised):
        error = shapes.error(response=Unanswering(raised), status=429, retry_after=60)

        assert classify_rate_limit(error) == RateLimit(MINUTE)

    def test_endless_objects_are_left_again(self):
        assert classify_rate_limit(shapes.error(response=Endless(), headers=Endless())) is None

    def test_an_exception_may_lie_about_its_class(self):
        def getter(self):
            raise RuntimeError("no class")

        error = type("Broken", (Exception,), {"__class__": property(getter)})()
        error.status = 429

        assert classify_rate_limit(error) == RateLimit(None)

    def test_endless_headers_are_left_again(self):
        headers = itertools.repeat(("Date", "today"))

        assert classify_rate_limit(shapes.error(status=429, headers=headers)) == RateLimit(None)
