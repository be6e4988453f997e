"""The worker: slots that claim one job, run it, settle it, and go on.

`Pool` is imported when it is asked for: a spawned child imports this package before Django is
set up.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pool import Pool

__all__ = ["Pool"]


def __getattr__(name: str) -> Any:
    """Import `Pool` when it is first asked for (PEP 562)."""
    if name == "Pool":
        from .pool import Pool

        return Pool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
