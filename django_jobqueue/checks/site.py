"""What the site sets outside of `JOBQUEUE`."""

from typing import Any

from django.core import checks
from django.db import DEFAULT_DB_ALIAS

from .. import conf
from ..models import Job
from .catalogue import message


def check_site(**_: Any) -> list[checks.CheckMessage]:
    """W013 and W014."""
    messages: list[checks.CheckMessage] = []
    alias = Job.objects.write_alias
    if alias != DEFAULT_DB_ALIAS:
        messages.append(
            message(
                "W013",
                f'Jobs are written to the database "{alias}", the rest of the site to '
                f'"{DEFAULT_DB_ALIAS}": a job is not part of the transaction that enqueues it.',
                "Route Job to the database of the data its jobs are about. If the split is "
                "meant, enqueue in transaction.on_commit() and silence this.",
            )
        )
    if not conf.times_are_aware():
        messages.append(
            message(
                "W014",
                "USE_TZ is False: at a change of the clocks an hour of due times, leases and "
                "ages is ambiguous.",
                "Set USE_TZ = True.",
            )
        )
    return messages
