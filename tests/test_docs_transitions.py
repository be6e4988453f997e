"""The table and the picture of a job's states, against what the manager really does."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest

from django_jobqueue import PermanentError, RateLimitError
from django_jobqueue.managers import JobManager
from django_jobqueue.models import Job, JobAttempt, QueueControl
from django_jobqueue.policy import Ending, RateLimitBudget, RetryLimits, decide, defer
from django_jobqueue.states import (
    TERMINAL_STATUSES,
    Attempt,
    Claim,
    ErrorReport,
    JobStatus,
    PauseKind,
)
from tests.pages import ROOT, table_rows

PAGE = ROOT / "docs" / "failures.md"
PICTURE = ROOT / "docs" / "images" / "states.svg"
DELETED = "deleted"

TYPE = "docs.transitions"
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
ATTEMPTS = 2
LIMITS = RetryLimits(
    max_attempts=ATTEMPTS + 1,
    base=SECOND,
    cap=SECOND,
    rate_limit=RateLimitBudget(max_hits=1, base=SECOND, cap=SECOND),
)

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Subject:
    """A job in some state, and the claim that holds it or that held it last."""

    job: Job
    claim: Claim


@dataclass(frozen=True)
class Step:
    """One way to call a transition."""

    transition: str
    take: Callable[[Subject], object]

    def __str__(self):
        return self.transition


@dataclass(frozen=True)
class Seen:
    status: str
    attempts: int
    recorded: tuple[str, ...]


def test_the_table_lists_exactly_what_the_transitions_do():
    done = {("enqueue", "", "pending", "0", "")} if enqueues_pending() else set()
    for step, status in product(STEPS, JobStatus):
        done |= changes_of(step, status)

    written = [tuple(row) for row in table_rows(PAGE, "Transition")]

    assert set(written) == done
    assert len(written) == len(set(written))


def test_the_picture_shows_the_changes_of_the_table():
    arrows = {
        (by, arrow.get("data-from", ""), arrow.get("data-to"))
        for arrow in ET.parse(PICTURE).iter()
        if arrow.get("data-by")
        for by in arrow.get("data-by").split()
    }
    written = {tuple(row[:3]) for row in table_rows(PAGE, "Transition")}

    assert arrows == {row for row in written if row[2] != DELETED}


def test_every_method_of_the_manager_that_may_write_is_tried():
    reads = {"write_alias", "on_write_alias", "seconds_until_due", "running_leases", "now", "look"}
    reads |= {"waiting_types", "some_payloads"}
    kin_of_enqueue = {"enqueue", "aenqueue", "enqueue_many", "insert"}
    ours = [cls for cls in JobManager.__mro__ if cls.__module__.startswith("django_jobqueue.")]
    public = {
        name
        for cls in ours
        for name, member in vars(cls).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }
    tried = {step.transition for step in STEPS} | {"settle_and_claim"} | set(BULK_FORMS)

    assert public - reads - kin_of_enqueue == tried


def test_a_bulk_form_changes_what_its_single_form_changes():
    for name, (single, *takes) in BULK_FORMS.items():
        singles = [step for step in STEPS if step.transition == single]
        bulk = [Step(single, take) for take in takes]
        for status in JobStatus:
            one_by_one = set().union(*(changes_of(step, status) for step in singles))
            assert set().union(*(changes_of(step, status) for step in bulk)) == one_by_one, name


def enqueues_pending():
    job = Job.objects.enqueue(TYPE)
    return seen(job.pk) == Seen("pending", 0, ())


def changes_of(step, status):
    """Take the step on a fresh job of that status; return the row of the table, if any."""
    Job.objects.all().delete()
    QueueControl.objects.all().delete()
    subject = reach(status)
    before = seen(subject.job.pk)
    assert before == Seen(status, ATTEMPTS, before.recorded)

    step.take(subject)

    after = seen(subject.job.pk)
    if after.status == before.status:
        assert after == before, f"{step} changed a {status} job that keeps its status"
        return set()
    new = "".join(after.recorded[len(before.recorded) :])
    return {(step.transition, before.status, after.status, counted(after.attempts), new)}


def reach(status):
    """Return a job that came to this status by transitions, its second attempt counted."""
    job = Job.objects.enqueue(TYPE)
    claim = Claim(job.pk, uuid4())
    if status == JobStatus.CANCELLED:
        Job.objects.cancel(job)
    elif status != JobStatus.PENDING:
        [job] = Job.objects.claim([claim.token], {TYPE: HOUR})
        ends = {JobStatus.SUCCEEDED: Ending(), JobStatus.FAILED: Ending(error=PermanentError("no"))}
        if status in ends:
            Job.objects.settle([decision(Subject(job, claim), ends[status])])
    Job.objects.filter(pk=job.pk).update(attempts=ATTEMPTS, max_attempts=LIMITS.max_attempts)
    job.refresh_from_db()
    assert job.status == status
    return Subject(job, claim)


def seen(job_id):
    job = Job.objects.filter(pk=job_id).first()
    attempts = JobAttempt.objects.filter(job=job_id).order_by("pk")
    recorded = tuple(attempts.values_list("outcome", flat=True))
    return Seen(job.status, job.attempts, recorded) if job else Seen(DELETED, ATTEMPTS, ())


def counted(attempts):
    """Say what became of the attempts, as the table does."""
    difference = attempts - ATTEMPTS
    if attempts == 0:
        return "0"
    return f"{difference:+d}" if difference else ""


def decision(subject, ending, *, hits=0, number=ATTEMPTS):
    error = ending.error
    report = ErrorReport(type(error).__name__, str(error)) if error else None
    attempt = Attempt(number, subject.job.worker, subject.job.started_at, report)
    return decide(subject.claim, attempt, ending, LIMITS, r=0.5, hits=hits, now=None)


def settle(error=None, **options):
    def take(subject):
        Job.objects.settle([decision(subject, Ending(error=error), **options)])

    return Step("settle", take)


def settle_deferral(subject):
    attempt = Attempt(ATTEMPTS, subject.job.worker, subject.job.started_at)
    Job.objects.settle([defer(subject.claim, attempt, SECOND)])


def promote(subject):
    due = Job.objects.now() - HOUR
    Job.objects.filter(pk=subject.job.pk, status=JobStatus.PENDING).update(scheduled_for=due)
    Job.objects.promote()


def reap(*, spent):
    def take(subject):
        abandon(subject, spent=spent)
        Job.objects.reap(HOUR, LIMITS.max_attempts)

    return Step("reap", take)


def reset_stuck(*, spent):
    def take(subject):
        abandon(subject, spent=spent)
        Job.objects.reset_stuck(these(subject), HOUR, LIMITS.max_attempts)

    return take


def abandon(subject, *, spent):
    gone = {"lease_expires_at": Job.objects.now() - HOUR}
    gone |= {"max_attempts": ATTEMPTS} if spent else {}
    these(subject).filter(status=JobStatus.RUNNING).update(**gone)


def these(subject):
    return Job.objects.filter(pk=subject.job.pk)


def purge(subject):
    long_ago = Job.objects.now() - 2 * HOUR
    ended = Job.objects.filter(pk=subject.job.pk, status__in=TERMINAL_STATUSES)
    ended.update(finished_at=long_ago)
    Job.objects.purge(HOUR)


def pause(subject):
    for kind, name in ((PauseKind.QUEUE, subject.job.queue), (PauseKind.TYPE, TYPE)):
        Job.objects.pause(kind, name)


def resume(subject):
    pause(subject)
    for kind, name in ((PauseKind.QUEUE, subject.job.queue), (PauseKind.TYPE, TYPE)):
        Job.objects.resume(kind, name)


STEPS = (
    Step("claim", lambda _: Job.objects.claim([uuid4()], {TYPE: HOUR})),
    Step("renew", lambda subject: Job.objects.renew([subject.claim])),
    settle(),
    settle(ValueError("again")),
    settle(ValueError("spent"), number=LIMITS.max_attempts),
    settle(PermanentError("never")),
    settle(RateLimitError()),
    settle(RateLimitError(), hits=1),
    Step("settle", settle_deferral),
    Step("release", lambda subject: Job.objects.release([subject.claim])),
    Step("promote", promote),
    Step("cancel", lambda subject: Job.objects.cancel(subject.job)),
    Step("retry", lambda subject: Job.objects.retry(subject.job)),
    reap(spent=False),
    reap(spent=True),
    Step("purge", purge),
    Step("delete_jobs", lambda subject: Job.objects.delete_jobs(subject.job)),
    Step("pause", pause),
    Step("resume", resume),
)

BULK_FORMS = {
    "cancel_all": ("cancel", lambda subject: Job.objects.cancel_all(these(subject))),
    "retry_all": ("retry", lambda subject: Job.objects.retry_all(these(subject))),
    "delete_all": ("delete_jobs", lambda subject: Job.objects.delete_all(these(subject))),
    "reset_stuck": ("reap", reset_stuck(spent=False), reset_stuck(spent=True)),
}
