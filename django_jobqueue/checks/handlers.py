"""The handlers of the site, as they were found and registered."""

from typing import Any

from django.core import checks

from .. import discovery, registry
from ..exceptions import shown
from ..models import Job
from ..schedules.declaring import stranded
from .catalogue import message


def check_discovery(**_: Any) -> list[checks.CheckMessage]:
    """E003: a jobs module is there and cannot be imported."""
    return [
        message(
            "E003",
            f"The module {failure.module} could not be imported: {failure.error}.",
            "Its handlers are missing, so no worker starts. Mend it. The whole traceback: "
            f'python manage.py shell -c "import {failure.module}"',
        )
        for failure in discovery.failures()
    ]


def check_types(**_: Any) -> list[checks.CheckMessage]:
    """E007: no row can hold the type of a handler."""
    longest = Job._meta.get_field("type").max_length or 0
    return [
        message(
            "E007",
            f"The job type {shown(name)} has {len(name)} characters; a row holds {longest}.",
            "Shorten it: no job of this type can be enqueued.",
        )
        for name in registry.types()
        if len(name) > longest
    ]


def check_schedules(**_: Any) -> list[checks.CheckMessage]:
    """W016: nothing ever fires the schedule."""
    return [
        message(
            "W016",
            f"The schedule {shown(name)} is on {place}, which is no registered handler: it never "
            "fires.",
            "Put @job_handler on a function, or call registry.register() with an instance of a "
            "JobHandler class. A subclass inherits no schedule.",
        )
        for name, place in stranded()
    ]
