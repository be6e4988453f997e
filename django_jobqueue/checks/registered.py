"""Which checks Django runs, and under which tags."""

from typing import Any

from django.core import checks

from ..conf import CHECK_TAG, DATABASE_CHECK_TAG
from .connected import check_connected
from .databases import check_databases
from .handlers import check_discovery, check_schedules, check_types
from .limits import check_limits
from .settings import check_advice, check_settings
from .site import check_site
from .tasks import check_tasks

OFFLINE = (
    check_settings,
    check_advice,
    check_limits,
    check_site,
    check_discovery,
    check_types,
    check_schedules,
    check_databases,
    check_tasks,
)


def check_offline(**arguments: Any) -> list[checks.CheckMessage]:
    """Look for every mistake that shows without a connection, in the order of the modules."""
    return [message for check in OFFLINE for message in check(**arguments)]


def register() -> None:
    """Register the checks under one tag; those that connect under that of databases too."""
    checks.register(check_offline, CHECK_TAG)
    checks.register(check_connected, checks.Tags.database, CHECK_TAG, DATABASE_CHECK_TAG)
