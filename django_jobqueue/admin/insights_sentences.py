"""The ten-second answer: is the queue healthy, in plain sentences, what is wrong first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..insights import Now, Overview, Trouble
from ..wording import estimated, in_words

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
        [*problems_of_now(now), *map(partial(told, overview), overview.troubles)],
        [waiting(now), *working(now), *backlog(overview), *lost(overview), *failed(overview)],
    )


def problems_of_now(now: Now) -> Iterator[str]:
    """Yield what is wrong at the moment."""
    due = now.total.ready + now.total.due
    if due and not now.workers:
        words = ngettext(
            "%(count)s job waits and no worker is alive.",
            "%(count)s jobs wait and no worker is alive.",
            due,
        )
        yield words % {"count": shown(due)}
    elif now.unserved:
        types = sorted({lane.type for lane in now.unserved})
        words = ngettext(
            "No live worker runs %(count)s type that has waiting jobs: %(names)s.",
            "No live worker runs %(count)s types that have waiting jobs: %(names)s.",
            len(types),
        )
        yield words % {"count": shown(len(types)), "names": listed(types)}
    held = sum(lane.tally.pending for lane in now.lanes if lane.paused)
    if held:
        words = ngettext(
            "%(count)s job waits behind a pause.", "%(count)s jobs wait behind a pause.", held
        )
        yield words % {"count": shown(held)}


def told(overview: Overview, trouble: Trouble) -> str:
    """Return a sentence about what the health probe finds wrong."""
    vitals, longest = overview.vitals, in_words(overview.limits.max_overdue)
    if trouble is Trouble.OVERDUE:
        words = _("The oldest due job has waited for %(age)s, longer than %(limit)s.")
        return words % {"age": in_words(vitals.overdue or 0.0), "limit": longest}
    if trouble is Trouble.STUCK:
        words = ngettext(
            "%(count)s running job has been stuck for longer than %(limit)s.",
            "%(count)s running jobs have been stuck for longer than %(limit)s.",
            vitals.stuck,
        )
        return words % {"count": shown(vitals.stuck), "limit": longest}
    words = ngettext(
        "%(failed)s of %(count)s job that ended in the last hour failed.",
        "%(failed)s of %(count)s jobs that ended in the last hour failed.",
        vitals.ended,
    )
    return words % {"failed": shown(vitals.failed), "count": shown(vitals.ended)}


def lost(overview: Overview) -> Iterator[str]:
    """Yield how many jobs nobody holds, while that is no problem yet: a worker takes them back."""
    stuck = overview.now.total.stuck
    if stuck and Trouble.STUCK not in overview.troubles:
        words = ngettext(
            "%(count)s running job is stuck: nobody holds it any more.",
            "%(count)s running jobs are stuck: nobody holds them any more.",
            stuck,
        )
        yield words % {"count": shown(stuck)}


def failed(overview: Overview) -> Iterator[str]:
    """Yield how many jobs of the window failed."""
    failures = overview.activity.failed
    ended = failures + overview.activity.succeeded
    if failures:
        words = ngettext(
            "%(failed)s of %(count)s job that ended in the window failed.",
            "%(failed)s of %(count)s jobs that ended in the window failed.",
            ended,
        )
        yield words % {"failed": shown(failures), "count": shown(ended)}


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
