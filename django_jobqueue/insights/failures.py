"""Failed jobs, grouped by what went wrong."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Value
from django.db.models.functions import Concat, StrIndex, Substr

from ..masking import masked_text
from ..states import JobStatus
from .reading import Reading
from .window import DEFAULT_WINDOW

MOST_READ = 10_000
"""Messages are grouped over the newest so many failures."""

MOST_GROUPS = 20

COLON = Value(":")
EXCEPTION_CLASS = Substr("last_error", 1, StrIndex(Concat("last_error", COLON), COLON) - 1)

VARYING = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"'[^'\n]*'|\"[^\"\n]*\""), "<text>"),
    (
        re.compile(
            r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}\b", re.IGNORECASE
        ),
        "<hex>",
    ),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)
"""What differs between messages that mean the same, the more particular first."""


@dataclass(frozen=True, slots=True)
class ClassOfFailures:
    """Failed jobs of the window whose last error was of one exception class."""

    exception_class: str
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class MessageOfFailures:
    """Failed jobs whose last error read the same, but for what varies from job to job."""

    message: str
    count: int


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed jobs of a window. `messages`: None when they were not asked for.

    The classes count every failure. The messages come from the `read` newest ones; `cut` says
    that there were more, or more different ones, than are told.
    """

    classes: Sequence[ClassOfFailures]
    messages: Sequence[MessageOfFailures] | None = None
    read: int = 0
    cut: bool = False


def failures(
    window: timedelta = DEFAULT_WINDOW, *, messages: bool = False, using: str | None = None
) -> Failures:
    """Return what the jobs failed of that failed in the window, the commonest first.

    `messages`: also by message, which is for those who may see payloads. Raises `InvalidWindow`.
    """
    return failures_in(Reading.of(using), window, messages=messages)


def failures_in(reading: Reading, window: timedelta, *, messages: bool) -> Failures:
    """Return what jobs failed of in the window before a reading."""
    failed = reading.jobs.terminal().filter(
        status=JobStatus.FAILED,
        finished_at__gte=reading.since(window),
        finished_at__lt=reading.now,
    )
    grouped = (
        failed.order_by()
        .values_list(EXCEPTION_CLASS.copy())
        .annotate(count=Count("pk"), last_at=Max("finished_at"))
    )
    classes = [ClassOfFailures(*row) for row in grouped.order_by("-count", "-last_at")]
    if not messages:
        return Failures(classes)
    newest = failed.order_by("-finished_at").values_list("last_error", flat=True)[:MOST_READ]
    texts = Counter(newest)
    counted: Counter[str] = Counter()
    for text, count in texts.items():
        counted[normalised(text)] += count
    return Failures(
        classes,
        [MessageOfFailures(*group) for group in counted.most_common(MOST_GROUPS)],
        read=texts.total(),
        cut=texts.total() == MOST_READ or len(counted) > MOST_GROUPS,
    )


def normalised(last_error: str) -> str:
    """Return an error's first line without secrets and without what varies from job to job."""
    text = masked_text(last_error.partition("\n")[0])
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text
