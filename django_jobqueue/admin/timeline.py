"""The attempts of one job in the order in which they happened, and what comes next."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from ..models import JobAttempt
from ..states import Executor, JobStatus, SettleOutcome
from .carried import TEXT_LENGTH, Shown, error_text, traceback_text
from .elapsed import elapsed

if TYPE_CHECKING:
    from .rows import Row

MOST_ATTEMPTS = 100
"""So many attempts are shown, the newest."""

LINE_LENGTH = 300

MOST_TEXT = 500_000
"""So many characters of messages and tracebacks are searched for secrets, the newest first."""

TEXTS = ("message", "traceback")
"""What of an attempt only those see who may view payloads."""

LOOKS = {
    SettleOutcome.SUCCEEDED: ("succeeded", "✓"),
    SettleOutcome.FAILED: ("failed", "✕"),
    SettleOutcome.REAPED: ("stuck", "⚠"),
    SettleOutcome.CANCELLED: ("cancelled", "⊘"),
}
OTHER_LOOK = ("pending", "↻")


@dataclass(frozen=True, slots=True)
class Entry:
    """One attempt, or what is to come. `look` names its colour; empty texts are not shown."""

    look: str
    icon: str
    outcome: str
    number: int | None = None
    at: datetime | None = None
    took: str = ""
    executor: str = ""
    worker: str = ""
    exception_class: str = ""
    message: Shown | None = None
    traceback: Shown | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The entries, newest last, and whether older attempts are left out."""

    entries: list[Entry]
    is_cut: bool
    limit: int = MOST_ATTEMPTS


def timeline_of(row: "Row", using: str, *, with_texts: bool) -> Timeline:
    """Return the timeline of a job; one query."""
    newest = JobAttempt.objects.using(using).filter(job_id=row.pk).order_by("-pk")
    if not with_texts:
        newest = newest.defer(*TEXTS)
    attempts = list(newest[: MOST_ATTEMPTS + 1])
    entries = []
    length = 0
    for attempt in attempts[:MOST_ATTEMPTS]:
        if with_texts:
            length += len(attempt.traceback) + min(len(attempt.message), TEXT_LENGTH)
        entries.append(past(attempt, with_texts=with_texts, fits=length <= MOST_TEXT))
    return Timeline([*reversed(entries), *latest(row)], is_cut=len(attempts) > MOST_ATTEMPTS)


def past(attempt: JobAttempt, *, with_texts: bool, fits: bool) -> Entry:
    """Return the entry of an attempt that ended without success.

    `fits`: whether there is still room for its traceback, and for more than a line of its message.
    """
    outcome = SettleOutcome(attempt.outcome)
    look, icon = LOOKS.get(outcome, OTHER_LOOK)
    return Entry(
        look,
        icon,
        str(outcome.label),
        attempt.number,
        attempt.started_at or attempt.finished_at,
        "" if attempt.started_at is None else elapsed(attempt.finished_at - attempt.started_at),
        str(Executor(attempt.executor).label),
        attempt.worker,
        attempt.exception_class,
        message_of(attempt, fits=fits) if with_texts and attempt.message else None,
        traceback_of(attempt, fits=fits) if with_texts and attempt.traceback else None,
    )


def message_of(attempt: JobAttempt, *, fits: bool) -> Shown:
    """Return the message of an attempt, or how it begins."""
    return error_text(attempt.message) if fits else error_text(attempt.message, LINE_LENGTH)


def traceback_of(attempt: JobAttempt, *, fits: bool) -> Shown:
    """Return the traceback of an attempt, or why it is not shown."""
    if fits:
        return traceback_text(attempt.traceback)
    return Shown("", _("Left out: those of newer attempts fill the page."))


def latest(row: "Row") -> Iterable[Entry]:
    """Return the entry that the job itself tells of: its run, its success or its next run."""
    if row.status == JobStatus.RUNNING:
        yield run(row, "stuck" if row.is_stuck else "running", "▶", _("running"), row.read_at)
    elif row.status == JobStatus.SUCCEEDED:
        outcome = str(SettleOutcome.SUCCEEDED.label)
        yield run(row, *LOOKS[SettleOutcome.SUCCEEDED], outcome, row.finished_at)
    elif row.status == JobStatus.CANCELLED:
        look, icon = LOOKS[SettleOutcome.CANCELLED]
        yield Entry(look, icon, str(JobStatus.CANCELLED.label), at=row.finished_at)
    elif row.status == JobStatus.PENDING:
        yield coming(row)


def run(row: "Row", look: str, icon: str, outcome: str, until: datetime | None) -> Entry:
    """Return the entry of the run that the job's own columns describe."""
    took = "" if row.started_at is None or until is None else elapsed(until - row.started_at)
    executor = str(Executor(row.executor).label)
    return Entry(look, icon, outcome, row.attempts, row.started_at, took, executor, row.worker)


def coming(row: "Row") -> Entry:
    """Return the entry of the next run of a job that waits."""
    due = row.scheduled_for
    left = timedelta(0) if due is None else due - row.read_at
    if due is None:
        text = _("waits for a worker")
    elif left <= timedelta(0):
        text = _("due now")
    elif row.attempts:
        text = _("retry due in %(duration)s") % {"duration": elapsed(left)}
    else:
        text = _("due in %(duration)s") % {"duration": elapsed(left)}
    return Entry("scheduled", "◷", text, at=due or row.ready_at)
