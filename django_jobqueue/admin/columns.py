"""The columns of the list of jobs."""

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import registry
from ..conf import settings
from ..masking import masked_beginning
from ..policy import max_attempts_for
from ..states import JobStatus, error_class_of
from ..wording import exact
from .badges import badge
from .durations import short_duration
from .rows import ShownState, duration_of, state_of

if TYPE_CHECKING:
    from .rows import Row

EMPTY = "-"
"""What a column shows where there is nothing to show."""

ICONS = {
    ShownState.PENDING: "○",
    ShownState.SCHEDULED: "◷",
    ShownState.RUNNING: "▶",
    ShownState.STUCK: "⚠",
    ShownState.SUCCEEDED: "✓",
    ShownState.FAILED: "✕",
    ShownState.CANCELLED: "■",
}
"""By shape, so that no state is told by its colour alone."""

HEAD_OF_ID, TAIL_OF_ID = 13, 6
"""Of an id: its time, which an index finds, and its end, by which jobs of one moment differ."""

LINE_LENGTH = 500
ERROR_LENGTH = 120
"""Of an error's first line so many characters are told, and so many shown at once."""


def moment(value: datetime, text: str) -> SafeString:
    """Return a text that tells the full time to those who point at it."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', value.isoformat(), exact(value), text
    )


class JobColumns:
    """What each column shows. Nothing here asks the database."""

    @admin.display(description=_("state"))
    def state(self, row: "Row") -> SafeString:
        """The state with its icon, and when a scheduled job is due."""
        state = state_of(row)
        shown = badge(state.value, ICONS[state], state.label)
        if state is not ShownState.SCHEDULED or row.scheduled_for is None:
            return shown
        left = row.scheduled_for - row.read_at
        text = (
            gettext("in %(duration)s") % {"duration": short_duration(left)}
            if left.total_seconds() > 0
            else gettext("due")
        )
        return format_html(
            '{} <span class="jobqueue-note">{}</span>', shown, moment(row.scheduled_for, text)
        )

    @admin.display(description=_("type"))
    def type_and_label(self, row: "Row") -> SafeString:
        """The type, which leads to the jobs of it, and the label of its handler."""
        handler = registry.get(row.type)
        note = gettext("no handler known here") if handler is None else handler.label
        shown = format_html('<a href="?{}">{}</a>', urlencode({"type": row.type}), row.type)
        if not note:
            return shown
        return format_html('{}<br><span class="jobqueue-note">{}</span>', shown, note)

    @admin.display(description=_("queue"))
    def queue_name(self, row: "Row") -> SafeString:
        """The queue, which leads to the jobs in it."""
        return format_html('<a href="?{}">{}</a>', urlencode({"queue": row.queue}), row.queue)

    @admin.display(description=_("priority"))
    def priority_number(self, row: "Row") -> int:
        """The priority; no column to sort by, since no index serves it alone."""
        return row.priority

    @admin.display(description=_("attempts"))
    def attempts_of_budget(self, row: "Row") -> str:
        """How often the job was started, of how often it may be."""
        budget = row.max_attempts
        if budget is None:
            handler = registry.get(row.type)
            profile = None if handler is None else handler.profile
            budget = max_attempts_for(profile, default=settings.MAX_ATTEMPTS)
        return f"{row.attempts} / {budget}"

    @admin.display(description=_("age"), ordering="-id")
    def age(self, row: "Row") -> SafeString:
        """How long ago the job was created."""
        return moment(row.created_at, short_duration(row.read_at - row.created_at))

    @admin.display(description=_("duration"))
    def duration(self, row: "Row") -> str:
        """How long the last attempt took, or takes so far."""
        taken = duration_of(row)
        if taken is None:
            return EMPTY
        shown = short_duration(taken)
        if row.status == JobStatus.RUNNING:
            return gettext("%(duration)s so far") % {"duration": shown}
        return shown

    @admin.display(description=_("last error"))
    def error_class(self, row: "Row") -> str:
        """The class of the last error, without its text."""
        name = error_class_of(row.last_error)
        return gettext("of unknown class") if name is None else name or EMPTY

    @admin.display(description=_("last error"))
    def error_line(self, row: "Row") -> SafeString | str:
        """The first line of the last error, for those who may view payloads."""
        lines = row.last_error.strip().splitlines()
        if not lines:
            return EMPTY
        line = masked_beginning(lines[0], LINE_LENGTH)
        short = Truncator(line).chars(ERROR_LENGTH)
        return format_html('<span class="jobqueue-error" title="{}">{}</span>', line, short)

    @admin.display(description=_("id"))
    def short_id(self, row: "Row") -> SafeString:
        """Both ends of the id, which the search takes as they are shown."""
        whole = str(row.pk)
        return format_html(
            '<span class="jobqueue-id" title="{}">{}…{}</span>',
            *(whole, whole[:HEAD_OF_ID], whole[-TAIL_OF_ID:]),
        )
