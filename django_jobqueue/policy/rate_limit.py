"""What an exception says about a provider's rate limit.

Exceptions come from many libraries and none is imported here: only the shapes are known. Whatever
an attribute answers or raises, classifying goes on.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from types import UnionType
from typing import Any, TypeVar

from ..exceptions import JobTimeoutError, RateLimitError

Answer = TypeVar("Answer")

LONGEST_WAIT = timedelta(days=30)
"""A provider that asks for more is not believed beyond this."""

LONGEST_SECONDS = LONGEST_WAIT.total_seconds()

RATE_LIMIT_STATUSES = frozenset({429, 503, 529})
"""Too many requests, service unavailable, and "overloaded" as some providers say it."""

STATUS_NAMES = (
    "status_code",
    "status",
    "http_status",
    "http_status_code",
    "HTTPStatusCode",
    "code",
)
HEADERS_NAMES = ("headers", "HTTPHeaders")
RETRY_AFTER = "retry-after"
MOST_HEADERS = 1_000

THROTTLING_NAMES = frozenset(
    {
        # AWS; botocore's retry handler takes the same ones for throttling.
        "bandwidthlimitexceeded",
        "ec2throttledexception",
        "limitexceededexception",
        "priorrequestnotcomplete",
        "provisionedthroughputexceededexception",
        "requestlimitexceeded",
        "requestthrottled",
        "requestthrottledexception",
        "slowdown",
        "throttledexception",
        "throttling",
        "throttlingexception",
        "toomanyrequestsexception",
        "transactioninprogressexception",
        # Others, as the class of the exception or its code.
        "ratelimiterror",
        "ratelimitexceeded",
        "ratelimitexceedederror",
        "ratelimitexceededexception",
        "throttled",
        "toomanyrequests",
        "toomanyrequestserror",
    }
)
"""In lower case and without underscores: providers spell these words differently."""

DELTA_SECONDS = re.compile(r"[0-9]+")
TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
HTTP_DATE = re.compile(
    rf"[A-Z][a-z]{{2}}, [0-9]{{2}} [A-Z][a-z]{{2}} [0-9]{{4}} {TIME} GMT"
    rf"|[A-Z][a-z]{{5,8}}, [0-9]{{2}}-[A-Z][a-z]{{2}}-[0-9]{{2}} {TIME} GMT"
    rf"|[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [0-9 ][0-9] {TIME} [0-9]{{4}}"
)
"""The three forms of RFC 9110, section 5.6.7; the mail module alone would take much more."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A provider asked us to wait; `retry_after` says how long at least, if it did."""

    retry_after: timedelta | None = None


def classify_rate_limit(error: BaseException, *, now: datetime | None = None) -> RateLimit | None:
    """Return what the exception says of a rate limit; None when it is not about one.

    It is one when it is a `RateLimitError`, or when the exception, its response or its metadata
    carries a status 429, 503 or 529 or a known throttling name. A `JobTimeoutError` never is.
    `now` (aware) is needed to understand a Retry-After that is a date. Never raises.
    """
    if is_a(error, JobTimeoutError):
        return None
    if not is_a(error, RateLimitError) and not says_rate_limit(error):
        return None
    waits = (parse_retry_after(value, now=now) for value in retry_after_values(error))
    return RateLimit(next((wait for wait in waits if wait is not None), None))


def parse_retry_after(value: object, *, now: datetime | None) -> timedelta | None:
    """Return the wait that a Retry-After value asks for, at most `LONGEST_WAIT`.

    It may be delta-seconds (text of digits, or a number from 0), a timedelta or an HTTP date;
    anything else is None, and so is a date without `now`. A date that is past asks for no wait.
    Never raises.
    """
    return quietly(lambda: wait_of(value, now))


def wait_of(value: Any, now: datetime | None) -> timedelta | None:
    """Do what `parse_retry_after` does; may raise for values that are not what they seem."""
    if is_a(value, bytes | str):
        value = text(value).strip(" \t")
        if HTTP_DATE.fullmatch(value):
            return None if now is None else wait_until(parsedate_to_datetime(value), now)
        if not DELTA_SECONDS.fullmatch(value):
            return None
        # As many digits as they may be: an endless number is a long wait.
        value = min(float(value), LONGEST_SECONDS)
    elif is_a(value, timedelta):
        value = value.total_seconds()
    # False for NaN too.
    if is_a(value, bool) or not is_a(value, int | float) or not 0 <= value < math.inf:
        return None
    return timedelta(seconds=min(value, LONGEST_SECONDS))


def wait_until(date: datetime, now: datetime) -> timedelta:
    """Return the time from `now` to a date that is in UTC, whether it says so or not."""
    left = date.replace(tzinfo=UTC) - now
    return min(max(left, timedelta(0)), LONGEST_WAIT)


def says_rate_limit(error: BaseException) -> bool:
    """Whether a status or a name of the exception is one of a rate limit."""
    return any(is_limiting_status(value) for value in statuses(error)) or any(
        is_throttling_name(value) for value in names(error)
    )


def statuses(error: BaseException) -> Iterator[Any]:
    """Yield everything that may be the HTTP status."""
    for place in places(error):
        for name in STATUS_NAMES:
            yield read(place, name)


def names(error: BaseException) -> Iterator[Any]:
    """Yield everything that may be the name of the error, as the provider calls it."""
    for place in places(error):
        yield read(place, "code")
        yield read(read(place, "Error"), "Code")
    yield read(type(error), "__name__")


def retry_after_values(error: BaseException) -> Iterator[Any]:
    """Yield everything that may say how long to wait, the most explicit first."""
    yield read(error, "retry_after")
    for place in places(error):
        for name in HEADERS_NAMES:
            headers = read(place, name)
            if headers is not None:
                yield quietly(partial(retry_after_header, headers))


def places(error: BaseException) -> Iterator[Any]:
    """Yield the exception, its response and its metadata, as far as they are there."""
    response = read(error, "response")
    metadata = read(error, "metadata")
    for place in (error, response, read(response, "ResponseMetadata"), metadata):
        if place is not None:
            yield place


def retry_after_header(headers: Any) -> Any:
    """Return the Retry-After among headers in a mapping or in pairs, in any case; may raise."""
    # A lookup by key would miss it in a plain dict that spells it differently.
    pairs = headers.items() if hasattr(headers, "items") else headers
    for name, value in islice(pairs, MOST_HEADERS):
        if text(name).lower() == RETRY_AFTER:
            return value[0] if is_a(value, list | tuple) else value
    return None


def is_limiting_status(value: Any) -> bool:
    """Whether a value is one of the statuses, as a number or its digits."""
    return bool(quietly(lambda: int(value) in RATE_LIMIT_STATUSES))


def is_throttling_name(value: Any) -> bool:
    """Whether a value is the name of a throttling error."""
    return bool(quietly(lambda: text(value).replace("_", "").lower() in THROTTLING_NAMES))


def text(value: Any) -> str:
    """Return a string or bytes as plain text; raise TypeError for anything else."""
    return value.decode("latin-1") if is_a(value, bytes) else str.__str__(value)


def read(place: Any, name: str) -> Any:
    """Return an item of a mapping or an attribute of anything else; None when there is none."""
    return quietly(lambda: place[name] if is_a(place, Mapping) else getattr(place, name))


def is_a(value: object, kind: type | UnionType) -> bool:
    """Do what `isinstance` does without asking the value's own `__class__`, which may raise."""
    return issubclass(type(value), kind)


def quietly(question: Callable[[], Answer]) -> Answer | None:
    """Return the answer, or None when finding it raised: the objects asked are not ours."""
    try:
        return question()
    except BaseException:  # noqa: BLE001 (a getter may even raise SystemExit)
        return None
