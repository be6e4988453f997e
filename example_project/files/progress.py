"""Jobs as the pages show them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from django_jobqueue import registry
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus

from .models import Document

# More digits than this and no database has the row.
LONGEST_KEY = 19
ACTIVE = ("waiting", "scheduled", "retrying", "running")
# Also the order in which a document lists them.
STATE_LABELS = {
    "failed": "Failed",
    "running": "Running",
    "retrying": "Waits for a retry",
    "waiting": "Waiting",
    "scheduled": "Scheduled",
    "cancelled": "Cancelled",
    "done": "Done",
}
STATE_OF_STATUS = {
    JobStatus.RUNNING: "running",
    JobStatus.SUCCEEDED: "done",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "cancelled",
}


def state_of(job: Job) -> str:
    """Return the state a person sees: pending is told apart by why it waits."""
    if job.status != JobStatus.PENDING:
        return STATE_OF_STATUS[JobStatus(job.status)]
    if job.attempts:
        return "retrying"
    return "scheduled" if job.scheduled_for else "waiting"


def label_of(job_type: str) -> str:
    """Return the handler's label; a job may outlive its handler."""
    handler = registry.get(job_type)
    return (handler.label if handler else "") or job_type


@dataclass(frozen=True, slots=True)
class Line:
    """One job in a table."""

    job: Job
    document: Document | None = None

    @property
    def label(self) -> str:
        """What the job does."""
        return label_of(self.job.type)

    @property
    def state(self) -> str:
        """Its state, as a word for the style sheet."""
        return state_of(self.job)

    @property
    def state_label(self) -> str:
        """Its state, for people."""
        return STATE_LABELS[self.state]

    @property
    def duration(self) -> timedelta | None:
        """How long the last attempt ran, when it is over."""
        if self.job.started_at and self.job.finished_at:
            return self.job.finished_at - self.job.started_at
        return None

    @property
    def seconds(self) -> str:
        """The duration as text."""
        return f"{self.duration.total_seconds():.2f} s" if self.duration is not None else ""

    @property
    def error(self) -> str:
        """What went wrong in the last attempt that failed."""
        return self.job.last_error or ""


@dataclass(slots=True)
class DocumentLine:
    """A document in the list, and how its latest jobs stand."""

    document: Document
    states: Counter[str] = field(default_factory=Counter)

    @property
    def parts(self) -> list[tuple[str, str, int]]:
        """State, its label and the number of jobs in it; only states that occur."""
        return [
            (state, label, self.states[state])
            for state, label in STATE_LABELS.items()
            if self.states[state]
        ]

    @property
    def total(self) -> int:
        """How many steps the document has."""
        return self.states.total()

    @property
    def finished(self) -> int:
        """How many of them are over."""
        return self.total - sum(self.states[state] for state in ACTIVE)

    @property
    def active(self) -> bool:
        """Whether any step is not over."""
        return self.finished < self.total


def jobs_of(documents: Iterable[Document]) -> list[Job]:
    """Return the jobs about these documents, oldest first, without the big columns."""
    ids = [str(document.pk) for document in documents]
    jobs = Job.objects.filter(subject_type="document", subject_id__in=ids)
    return list(jobs.defer("payload", "result").order_by("id"))


def document_lines(documents: Iterable[Document]) -> list[DocumentLine]:
    """Return a line per document; of a repeated step only the latest job counts."""
    lines = {str(document.pk): DocumentLine(document) for document in documents}
    jobs = jobs_of(line.document for line in lines.values())
    latest = {(job.subject_id, job.type): job for job in jobs}
    for job in latest.values():
        lines[str(job.subject_id)].states[state_of(job)] += 1
    return list(lines.values())


def job_lines(jobs: Iterable[Job]) -> list[Line]:
    """Return a line per job, with its document while there is one."""
    jobs = list(jobs)
    documents = Document.objects.in_bulk({key for job in jobs if (key := document_key(job))})
    return [Line(job, documents.get(document_key(job) or 0)) for job in jobs]


def document_key(job: Job) -> int | None:
    """Return the key of the document that the job is about, if it is about one."""
    text = job.subject_id or ""
    if job.subject_type == "document" and text.isdecimal() and len(text) < LONGEST_KEY:
        return int(text)
    return None
