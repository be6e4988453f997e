"""Failed jobs, grouped by what went wrong."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, CharField, Count, Max, Value, When
from django.db.models.functions import Concat, Left, StrIndex

from ..masking import masked_beginning
from ..querysets import JobQuerySet
from ..states import CLASS_OF_ERROR, JobStatus
from .reading import Reading
from .window import DEFAULT_WINDOW

MOST_READ = 10_000
"""Messages are grouped over the newest so many failures."""

TEXT_LENGTH = 300
"""So many characters of a message are read."""

MOST_TEXTS = 200
"""So many different messages are searched for secrets, the most frequent ones."""

MOST_GROUPS = 20

COLON = Value(":")
CLASS = Case(
    When(last_error="", then=Value("")),
    When(
        last_error__regex=CLASS_OF_ERROR,
        then=Left("last_error", StrIndex(Concat("last_error", COLON), COLON) - 1),
    ),
    default=None,
    output_field=CharField(null=True),
)
"""What `error_class_of` returns, in SQL: so a class is told, and never a message."""

WORD_WITH_DIGIT = re.compile(r"(?<!\w)[^\W\d]*+\d\w*+")
"""A number, or a part of an id: messages that differ only in these are counted as one text."""

MOST_WORDS = 40

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
    """Failed jobs of the window whose last error was of one exception class.

    `exception_class`: empty without an error text, None for texts that name no class.
    """

    exception_class: str | None
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

    The classes count every failure. The messages come from the `read` newest ones, and of these
    from the 200 most frequent texts; `cut` says that there were more, or more different ones, than
    are told.
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
    classes = classes_of(failed)
    if not messages:
        return Failures(classes)
    newest = failed.order_by("-finished_at").values_list(Left("last_error", TEXT_LENGTH + 1))
    texts = texts_of(text for (text,) in newest[:MOST_READ])
    counted: Counter[str] = Counter()
    for text, count in texts.most_common(MOST_TEXTS):
        counted[normalised(text)] += count
    read = texts.total()
    return Failures(
        classes,
        [MessageOfFailures(*group) for group in counted.most_common(MOST_GROUPS)],
        read=read,
        cut=read == MOST_READ or len(texts) > MOST_TEXTS or len(counted) > MOST_GROUPS,
    )


def classes_of(failed: JobQuerySet) -> list[ClassOfFailures]:
    """Return how many failed jobs there are of each class, the commonest first."""
    grouped = failed.order_by().values_list(CLASS.copy())
    counted = grouped.annotate(count=Count("pk"), last_at=Max("finished_at"))
    return [ClassOfFailures(*row) for row in counted.order_by("-count", "-last_at")]


def texts_of(last_errors: Iterable[str]) -> Counter[str]:
    """Return the first lines of errors, and how often each came.

    The first of those that differ only in words with digits (the first 40) stands for all of them.
    """
    examples: dict[str, str] = {}
    texts: Counter[str] = Counter()
    for text, count in Counter(last_errors).items():
        line = text.partition("\n")[0]
        texts[examples.setdefault(WORD_WITH_DIGIT.sub("0", line, MOST_WORDS), line)] += count
    return texts


def normalised(last_error: str) -> str:
    """Return an error's first line without secrets and without what varies from job to job."""
    text = masked_beginning(last_error.partition("\n")[0], TEXT_LENGTH)
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text
