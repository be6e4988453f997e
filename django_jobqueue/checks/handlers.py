"""The handlers of the site, as they were found and registered."""

from typing import Any

from django.core import checks

from .. import discovery, registry
from ..exceptions import shown
from ..models import Job
from .catalogue import message


def check_discovery(**_: Any) -> list[checks.CheckMessage]:
    """E003: a jobs module is there and cannot be imported."""
    return [
        message(
            "E003",
            f"The module {failure.module} could not be imported: {failure.error.rstrip('.')}.",
            "Its handlers are missing, so no worker starts. Fix the import.",
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
