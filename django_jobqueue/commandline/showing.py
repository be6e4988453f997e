"""`jobqueue show`: one job and its attempts."""

import argparse
from typing import Any

from ..models import Job, JobAttempt
from .describing import BIG_COLUMNS, described, described_attempt, revealed, seconds_between
from .printing import NARROWEST, keyed, shown, span
from .reading import job_id, named
from .word import Context, Word

HEADINGS = ("#", "OUTCOME", "STARTED", "TOOK", "WORKER", "ERROR")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", type=job_id, metavar="ID", help="the id, or how it begins")
    parser.add_argument(
        "--payload",
        action="store_true",
        help="also payload, result, error texts and tracebacks, with secrets masked",
    )


def run(context: Context, arguments: dict[str, Any]) -> None:
    """Print the job; Refused when there is none, or more than one."""
    rows = context.manager.on_write_alias()
    job = rows.defer(*BIG_COLUMNS).get(pk=named(rows, arguments["id"]))
    attempts = list(
        JobAttempt.objects.using(context.manager.write_alias).filter(job=job).order_by("pk")
    )
    reveal = arguments["payload"]
    told = [described_attempt(attempt, reveal=reveal) for attempt in attempts]
    hidden = revealed(rows, job) if reveal else {}
    context.printer.document({**described(job), **hidden, "attempt_history": told})
    print_job(context, job)
    if attempts:
        print_attempts(context, attempts)
    if reveal:
        print_hidden(context, hidden, told)


def print_job(context: Context, job: Job) -> None:
    """Print what the job is, leaving out what is empty."""
    fields = {
        name.replace("_", " "): shown(value)
        for name, value in described(job).items()
        if value not in (None, "")
    }
    for line in keyed(fields):
        context.printer.line(line)


def print_attempts(context: Context, attempts: list[JobAttempt]) -> None:
    """Print the attempts that did not succeed."""
    context.printer.line()
    rows = [
        [
            str(attempt.number),
            str(attempt.outcome),
            "-" if attempt.started_at is None else attempt.started_at.isoformat(" ", "seconds"),
            span(seconds_between(attempt.started_at, attempt.finished_at)),
            attempt.worker,
            attempt.exception_class,
        ]
        for attempt in attempts
    ]
    context.printer.table(HEADINGS, rows, flexible={"WORKER": NARROWEST, "ERROR": NARROWEST})


def print_hidden(context: Context, hidden: dict[str, Any], attempts: list[dict[str, Any]]) -> None:
    """Print payload, result, and what the errors said."""
    printer = context.printer
    as_text = hidden.get("as_text", {})
    for name in BIG_COLUMNS:
        printer.line()
        if name in as_text:
            printer.line(f"{name}, the beginning of {as_text[name]} characters, not read as JSON:")
            printer.block(hidden[name])
        else:
            printer.line(f"{name}:")
            printer.value(hidden[name])
    if hidden["last_error"]:
        printer.line()
        printer.line("last error:")
        printer.block(hidden["last_error"])
    for attempt in attempts:
        if text := attempt["traceback"] or attempt["message"]:
            printer.line()
            printer.line(f"attempt {attempt['number']}:")
            printer.block(text)


SHOW = Word("show", "show one job and its attempts", declare, run)
