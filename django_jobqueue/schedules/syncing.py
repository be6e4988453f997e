"""From the code's declarations to rows."""

from collections.abc import Iterable
from dataclasses import asdict

from ..conf import warn_once
from ..logs import get_logger
from ..models import Schedule
from .declaring import Declaration

logger = get_logger(__name__)

RHYTHM = ("cron", "timezone")
"""The columns whose change makes the known next tick wrong."""


def sync(using: str, declarations: Iterable[Declaration]) -> None:
    """Make the rows say what the code declares. Their pause stays as it is.

    A row that was made by hand under a declared name is left alone. Rows that this process does
    not declare are left too: another release may declare them.
    """
    for declaration in declarations:
        wanted = asdict(declaration)
        name = wanted.pop("name")
        rows = Schedule._default_manager.using(using)
        row, _ = rows.get_or_create(name=name, defaults={**wanted, "declared_in_code": True})
        if not row.declared_in_code:
            warn_once(
                logger,
                "Schedule %r is declared in code and was also made by hand; the row made by hand "
                "counts. Delete it, or give one of them another name.",
                name,
            )
            continue
        changed = {field: value for field, value in wanted.items() if getattr(row, field) != value}
        if changed:
            restart = {"next_tick_at": None} if changed.keys() & set(RHYTHM) else {}
            rows.filter(pk=row.pk, declared_in_code=True).update(**changed, **restart)
