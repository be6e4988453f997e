"""The ten-second answer: is the queue healthy, in plain sentences, what is wrong first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..insights import Now, Overview
from ..wording import estimated, in_words

MANY_FAIL = 0.1
"""From this share of failed jobs on, it is a problem."""

MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong, and how things stand."""

    problems: Sequence[str]
    facts: Sequence[str]

    @property
    def headline(self) -> str:
        """Whether somebody has to act."""
        return _("The queue needs attention") if self.problems else _("The queue is healthy")


def verdict_of(overview: Overview) -> Verdict:
    """Return the answer."""
    now = overview.now
    return Verdict(
        [*problems_of_now(now), *failing(overview, problem=True)],
        [waiting(now), *working(now), *backlog(overview), *failing(overview, problem=False)],
    )


def problems_of_now(now: Now) -> Iterator[str]:
    """Yield what is wrong at the moment."""
    pending = now.total.pending
    if pending and not now.workers:
        words = ngettext(
            "%(count)s job waits and no worker is alive.",
            "%(count)s jobs wait and no worker is alive.",
            pending,
        )
        yield words % {"count": shown(pending)}
    elif now.unserved:
        types = sorted({lane.type for lane in now.unserved})
        words = ngettext(
            "No live worker runs %(count)s type that has waiting jobs: %(names)s.",
            "No live worker runs %(count)s types that have waiting jobs: %(names)s.",
            len(types),
        )
        yield words % {"count": shown(len(types)), "names": listed(types)}
    stuck = now.total.stuck
    if stuck:
        words = ngettext(
            "%(count)s running job is stuck: nobody holds it any more.",
            "%(count)s running jobs are stuck: nobody holds them any more.",
            stuck,
        )
        yield words % {"count": shown(stuck)}
    held = sum(lane.tally.pending for lane in now.lanes if lane.paused)
    if held:
        words = ngettext(
            "%(count)s job waits behind a pause.", "%(count)s jobs wait behind a pause.", held
        )
        yield words % {"count": shown(held)}


def failing(overview: Overview, *, problem: bool) -> Iterator[str]:
    """Yield how many jobs failed, where that is a problem or where it is none."""
    failed, succeeded = overview.activity.failed, overview.activity.succeeded
    if failed and (failed >= MANY_FAIL * (failed + succeeded)) is problem:
        words = ngettext(
            "%(failed)s of %(count)s job that ended in the window failed.",
            "%(failed)s of %(count)s jobs that ended in the window failed.",
            failed + succeeded,
        )
        yield words % {"failed": shown(failed), "count": shown(failed + succeeded)}


def waiting(now: Now) -> str:
    """Return how many jobs wait, and for how long."""
    total = now.total
    ready = total.ready + total.due
    later = total.scheduled - total.due
    if not ready:
        words = _("No job waits to be run now.")
    elif now.oldest_due_age is None:
        words = ngettext("%(count)s job waits.", "%(count)s jobs wait.", ready)
    else:
        words = ngettext(
            "%(count)s job waits, for %(age)s.",
            "%(count)s jobs wait, the oldest for %(age)s.",
            ready,
        )
    age = "" if now.oldest_due_age is None else in_words(now.oldest_due_age)
    said = words % {"count": shown(ready), "age": age}
    if not later:
        return said
    scheduled = ngettext("%(count)s more is scheduled.", "%(count)s more are scheduled.", later) % {
        "count": shown(later)
    }
    return f"{said} {scheduled}"


def working(now: Now) -> Iterator[str]:
    """Yield who works."""
    if not now.workers:
        yield _("No worker is alive.")
        return
    processes = ngettext(
        "%(count)s worker is alive.", "%(count)s workers are alive.", len(now.workers)
    ) % {"count": shown(len(now.workers))}
    running = ngettext(
        "%(count)s job runs on %(slots)s slots.",
        "%(count)s jobs run on %(slots)s slots.",
        now.total.running,
    ) % {"count": shown(now.total.running), "slots": shown(now.slots)}
    yield f"{processes} {running}"


def backlog(overview: Overview) -> Iterator[str]:
    """Yield when the backlog will be gone."""
    if not overview.now.total.active:
        return
    seconds = overview.backlog_seconds
    if seconds is None:
        yield _("When the backlog will be gone cannot be said yet: see the types below.")
    else:
        yield _("The backlog will be gone in about %(time)s.") % {"time": estimated(seconds)}


def listed(names: Sequence[str]) -> str:
    """Return some names, and how many more there are."""
    first = ", ".join(names[:MOST_NAMES])
    if len(names) <= MOST_NAMES:
        return first
    return _("%(names)s and %(count)s more") % {
        "names": first,
        "count": shown(len(names) - MOST_NAMES),
    }


def shown(count: int) -> str:
    """Return a count as the reader's language writes it."""
    return str(number_format(count, force_grouping=True))
