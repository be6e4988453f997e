"""The summary at the end, for a person."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus

from ..files.models import Document
from ..files.progress import label_of
from . import account
from .tally import Step, Tally

SITE = "http://127.0.0.1:8000/"
MOST_LINES = 10
RETRIED_NOTE = "The archive is simulated: it misses the first attempt of every third file."
FAILED_NOTE = "One sample is meant to fail: a text that says it is a picture."


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the summary tells."""

    tally: Tally
    documents: int
    samples: bool
    seconds: float
    password: str | None

    def print(self, console: Console) -> None:
        """Print the summary."""
        everything = self.tally.all
        console.print()
        console.print(self.headline(everything), style="bold", highlight=False)
        console.print()
        console.print(steps_table(self.tally.steps))
        self.print_jobs(console, "Retried", RETRIED_NOTE, retried(everything.jobs))
        note = FAILED_NOTE if self.samples else ""
        self.print_jobs(console, "Failed", note, failed(everything.jobs))
        self.print_next(console)

    def headline(self, step: Step) -> str:
        """Return the whole in a sentence or two."""
        left = step.total - step.over
        text = (
            f"{step.over} of {step.total} jobs over {self.documents} files in "
            f"{self.seconds:.1f} s: {step.succeeded} succeeded, {step.failed} failed, "
            f"{step.retried} retried."
        )
        return f"{text} {left} left in the queue." if left else text

    def print_jobs(self, console: Console, heading: str, note: str, jobs: list[Job]) -> None:
        """Print what happened to the jobs, and why; many of them are cut short."""
        if not jobs:
            return
        names = names_of(jobs)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
        for job in jobs[:MOST_LINES]:
            name = names.get(str(job.subject_id), "?")
            table.add_row(label_of(job.type), escape(name), escape(story_of(job)))
        console.print()
        console.print(f"[bold]{heading}[/bold]  {note}")
        console.print(table)
        if len(jobs) > MOST_LINES:
            console.print(f"  … and {len(jobs) - MOST_LINES} more")

    def print_next(self, console: Console) -> None:
        """Print where to look, and what to run."""
        manage = manage_command()
        if self.password:
            login = f"log in as {account.NAME} with the password {self.password} (not shown again)"
        else:
            login = (
                f"log in as {account.NAME} with the password of the first run; "
                f"a new one: {manage} changepassword {account.NAME}"
            )
        lines = [
            ("The site", f"{manage} runserver", f"then open {SITE}"),
            ("The admin", f"{SITE}admin/", login),
            ("A worker", f"{manage} run_jobworker", "runs the jobs of new uploads"),
        ]
        console.print()
        console.print("Where to look next", style="bold")
        for what, where, note in lines:
            console.print(
                f"  {what + ':':<11} {where}\n  {'':<11} {note}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


def steps_table(steps: list[Step]) -> Table:
    """Return one row per step."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Step")
    for heading in ("Jobs", "Succeeded", "Failed", "Retried", "Typical time"):
        table.add_column(heading, justify="right")
    for step in steps:
        typical = step.typical_seconds
        table.add_row(
            step.label,
            str(step.total),
            str(step.succeeded),
            str(step.failed),
            str(step.retried),
            "–" if typical is None else f"{typical:.2f} s",
        )
    return table


def retried(jobs: list[Job]) -> list[Job]:
    """Return the jobs that were started more than once."""
    return [job for job in jobs if job.attempts > 1]


def failed(jobs: list[Job]) -> list[Job]:
    """Return the jobs that will not run again without having succeeded."""
    return [job for job in jobs if job.status in (JobStatus.FAILED, JobStatus.CANCELLED)]


def story_of(job: Job) -> str:
    """Return what became of the job, and why."""
    why = f" ({job.last_error})" if job.last_error else ""
    number = f"{job.attempts} attempt{'s' if job.attempts != 1 else ''}"
    return f"{job.get_status_display()} after {number}{why}"


def names_of(jobs: list[Job]) -> dict[str, str]:
    """Return the names of the documents, by the jobs' subject."""
    ids = {int(job.subject_id) for job in jobs[:MOST_LINES] if job.subject_id}
    found = Document.objects.filter(pk__in=ids).values_list("pk", "name")
    return {str(pk): name for pk, name in found}


def manage_command() -> str:
    """Return how to call manage.py with this very Python, from the folder we are in."""
    return f"{shown(Path(sys.executable))} {shown(settings.BASE_DIR / 'manage.py')}"


def shown(path: Path) -> str:
    """Return the path for a command line: short when it lies in the current folder."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
