"""`jobqueue status`: what the queue is doing, on one screen."""

import argparse
from datetime import timedelta
from typing import Any

from .. import insights, remedy
from .printing import NARROWEST, Printer, counted, keyed, span
from .word import Context, Word

LAST_HOUR = timedelta(hours=1)

TYPE_HEADINGS = ("TYPE", "READY", "SCHEDULED", "RUNNING", "RETRIED", "STUCK")
WORKER_HEADINGS = ("WORKER", "VERSION", "MODE", "BUSY", "QUEUES", "SEEN")

COUNTS = ("ready", "scheduled", "due", "running", "retried", "rate_limited", "stuck")
"""Of a tally, in this order."""


def declare(_parser: argparse.ArgumentParser) -> None:
    """Declare no arguments but those of every word."""


def run(context: Context, _arguments: dict[str, Any]) -> None:
    """Print counts, the oldest due job, pauses, throughput and workers."""
    using = context.manager.write_alias
    now = insights.now(using=using)
    recent = insights.activity(LAST_HOUR, using=using)
    context.printer.document(as_document(now, recent))
    print_counts(context.printer, now, recent)
    print_types(context.printer, now)
    print_workers(context.printer, now)


def as_document(now: insights.Now, recent: insights.Activity) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "at": now.at,
        "jobs": counts_of(now.total),
        "types": {name: counts_of(tally) for name, tally in now.by_type.items()},
        "oldest_due_seconds": seconds(now.oldest_due_age),
        "oldest_due": None if (oldest := now.oldest_due) is None else place_of(oldest),
        "unserved": [place_of(lane) for lane in now.unserved],
        "last_hour": {"succeeded": recent.succeeded, "failed": recent.failed},
        "paused": [
            {"kind": p.kind.value, "name": p.name, "reason": p.reason, "paused_at": p.paused_at}
            for p in now.pauses
        ],
        "workers": [
            {
                "worker": w.name,
                "version": w.version,
                "mode": w.mode,
                "slots": w.slots,
                "busy": w.busy,
                "queues": queues_of(w),
                "started_at": w.started_at,
                "seen_at": w.seen_at,
            }
            for w in now.workers
        ],
    }


def counts_of(tally: insights.Tally) -> dict[str, int]:
    """Return the counts by name."""
    return {name: getattr(tally, name) for name in COUNTS}


def place_of(lane: insights.Lane) -> dict[str, str]:
    """Return where jobs wait."""
    return {"type": lane.type, "queue": lane.queue}


def queues_of(worker: insights.LiveWorker) -> list[str] | None:
    """Return the queues of a worker in order; None for every queue."""
    return None if worker.queues is None else sorted(worker.queues)


def seconds(age: timedelta | None) -> float | None:
    """Return an age in seconds; None for none."""
    return None if age is None else age.total_seconds()


def print_counts(printer: Printer, now: insights.Now, recent: insights.Activity) -> None:
    """Print what is true of the whole queue."""
    total = now.total
    oldest, waiting = now.oldest_due, "none"
    if oldest is not None:
        waits = span(seconds(now.oldest_due_age))
        waiting = f"waits {waits}, {oldest.type} of the queue {oldest.queue}"
    fields = {
        "ready": str(total.ready),
        "scheduled": f"{total.scheduled} ({total.due} due)" if total.due else str(total.scheduled),
        "running": str(total.running),
        "stuck": str(total.stuck),
        "oldest due": waiting,
        "last hour": f"{recent.succeeded} succeeded, {recent.failed} failed",
        "workers": f"{len(now.workers)} with {counted(now.slots, 'slot')}",
    }
    for line in keyed(fields):
        printer.line(line)
    for pause in now.pauses:
        reason = f": {pause.reason}" if pause.reason else ""
        printer.line(f"PAUSED {pause.kind.value} {pause.name}{reason}")
    for trouble in dict.fromkeys(
        remedy.unserved(lane.type, lane.queue, now.workers) for lane in now.unserved
    ):
        printer.line(f"PROBLEM: {trouble}")


def print_types(printer: Printer, now: insights.Now) -> None:
    """Print what waits and runs of each type."""
    if not now.by_type:
        return
    printer.line()
    rows = [
        [name, *(str(count) for count in (t.ready, t.scheduled, t.running, t.retried, t.stuck))]
        for name, t in now.by_type.items()
    ]
    printer.table(TYPE_HEADINGS, rows, flexible={"TYPE": NARROWEST})


def print_workers(printer: Printer, now: insights.Now) -> None:
    """Print the worker processes that live."""
    if not now.workers:
        return
    printer.line()
    rows = [
        [
            worker.name,
            worker.version,
            worker.mode,
            f"{worker.busy}/{worker.slots}",
            "all" if (queues := queues_of(worker)) is None else ",".join(queues),
            f"{span(seconds(now.at - worker.seen_at))} ago",
        ]
        for worker in now.workers
    ]
    printer.table(WORKER_HEADINGS, rows, flexible={"WORKER": NARROWEST, "QUEUES": NARROWEST})


STATUS = Word("status", "what the queue is doing", declare, run)
