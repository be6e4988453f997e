"""What people may do to jobs in the admin: each with its permission, its words and its one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ..conf import settings, stuck_threshold
from ..managers import JobQuerySet
from ..models import Job
from ..states import COUNT_LIMIT, BulkReport, SkipReason
from .access import may

Text = Any
"""A lazy text. Of those with a count, `number` chooses the form and `count` is what is shown."""

NOBODY = 0
"""As a limit: change nothing and say what would be changed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to do to jobs.

    `run` makes the one call; `eligible` are the jobs that it applies to.
    """

    name: str
    permission: str
    eligible: Callable[[JobQuerySet], JobQuerySet]
    run: Callable[..., BulkReport]
    label: Text
    sure: Text
    menu: Text
    question: Text
    done: Text
    nothing: Text
    flag: int = CHANGE
    dangerous: bool = False

    def permitted(self, request: HttpRequest) -> bool:
        """Whether the user may do this."""
        return may(request, self.permission)

    def preview(self, jobs: JobQuerySet) -> BulkReport:
        """Return what would be done (as `remaining`) and what would be skipped."""
        return self.run(jobs, limit=NOBODY)


def reset_stuck(jobs: JobQuerySet, **options: Any) -> BulkReport:
    """Reset stuck jobs by the site's own settings."""
    return Job.objects.reset_stuck(jobs, stuck_threshold(), settings.MAX_ATTEMPTS, **options)


RETRY = Operation(
    name="retry",
    permission="retry_job",
    eligible=JobQuerySet.retryable,
    run=Job.objects.retry_all,
    label=_("Retry job"),
    sure=_("Yes, retry"),
    menu=_("Retry selected jobs"),
    question=ngettext_lazy(
        "Retry %(count)s failed or cancelled job?",
        "Retry %(count)s failed or cancelled jobs?",
        "number",
    ),
    done=ngettext_lazy(
        "%(count)s job waits to run again.", "%(count)s jobs wait to run again.", "number"
    ),
    nothing=_("No failed or cancelled job is among them: nothing to retry."),
)
CANCEL = Operation(
    name="cancel",
    permission="cancel_job",
    eligible=JobQuerySet.pending,
    run=Job.objects.cancel_all,
    label=_("Cancel job"),
    sure=_("Yes, cancel"),
    menu=_("Cancel selected pending jobs"),
    question=ngettext_lazy(
        "Cancel %(count)s pending job?", "Cancel %(count)s pending jobs?", "number"
    ),
    done=ngettext_lazy("%(count)s job was cancelled.", "%(count)s jobs were cancelled.", "number"),
    nothing=_("No pending job is among them: nothing to cancel."),
    dangerous=True,
)
RESET = Operation(
    name="reset",
    permission="reset_stuck_jobs",
    eligible=lambda jobs: jobs.stuck(stuck_threshold()),
    run=reset_stuck,
    label=_("Reset job"),
    sure=_("Yes, reset"),
    menu=_("Reset selected stuck jobs"),
    question=ngettext_lazy("Reset %(count)s stuck job?", "Reset %(count)s stuck jobs?", "number"),
    done=ngettext_lazy(
        "%(count)s stuck job was reset.", "%(count)s stuck jobs were reset.", "number"
    ),
    nothing=_("No stuck job is among them: nothing to reset."),
)
DELETE = Operation(
    name="delete",
    permission="delete_job",
    eligible=JobQuerySet.deletable,
    run=Job.objects.delete_all,
    label=_("Delete job"),
    sure=_("Yes, delete"),
    menu=_("Delete selected jobs"),
    question=ngettext_lazy(
        "Delete %(count)s job for good?", "Delete %(count)s jobs for good?", "number"
    ),
    done=ngettext_lazy("%(count)s job was deleted.", "%(count)s jobs were deleted.", "number"),
    nothing=_("Every one of them is running: nothing to delete."),
    flag=DELETION,
    dangerous=True,
)
OPERATIONS = (RETRY, CANCEL, RESET, DELETE)

SKIPPED = {
    SkipReason.RUNNING: ngettext_lazy(
        "%(count)s that is running", "%(count)s that are running", "number"
    ),
    SkipReason.STATE: ngettext_lazy(
        "%(count)s in another state", "%(count)s in other states", "number"
    ),
    SkipReason.LOCKED: ngettext_lazy(
        "%(count)s that somebody else is changing right now",
        "%(count)s that somebody else is changing right now",
        "number",
    ),
    SkipReason.DUPLICATE: ngettext_lazy(
        "%(count)s whose dedup key another active job has",
        "%(count)s whose dedup keys other active jobs have",
        "number",
    ),
    SkipReason.GONE: ngettext_lazy(
        "%(count)s that was deleted meanwhile", "%(count)s that were deleted meanwhile", "number"
    ),
}
REMAINING = ngettext_lazy(
    "%(count)s job that this applies to is left.",
    "%(count)s jobs that this applies to are left.",
    "number",
)


def counted(text: Text, number: int) -> str:
    """Return a text for that many jobs; a number at the limit of counting stands for more."""
    return str(text % {"number": number, "count": shown_count(number)})


def shown_count(number: int) -> str:
    """Return a number for people: "1,234", and "10,000+" at the limit of counting."""
    shown = number_format(min(number, COUNT_LIMIT), use_l10n=True, force_grouping=True)
    return f"{shown}+" if number >= COUNT_LIMIT else shown


def exact_count(text: Text, number: int) -> str:
    """Return a text for exactly that many jobs."""
    shown = number_format(number, use_l10n=True, force_grouping=True)
    return str(text % {"number": number, "count": shown})


def skipped_lines(report: BulkReport) -> Sequence[str]:
    """Return a line for each reason why jobs are skipped."""
    return [counted(SKIPPED[reason], number) for reason, number in report.reasons.items()]
