"""Background jobs in the database a Django site already has.

The names below may be imported before Django's app registry is ready.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import registry
    from .enqueueing import JobRequest
    from .exceptions import PermanentError, RateLimitError
    from .handlers import JobHandler, job_handler
    from .policy import ExecutionProfile
    from .schedules import schedule

__version__ = "0.1.0.dev0"

__all__ = [
    "ExecutionProfile",
    "JobHandler",
    "JobRequest",
    "PermanentError",
    "RateLimitError",
    "__version__",
    "job_handler",
    "registry",
    "schedule",
]

_HOMES = {
    "ExecutionProfile": "policy",
    "JobHandler": "handlers",
    "JobRequest": "enqueueing",
    "PermanentError": "exceptions",
    "RateLimitError": "exceptions",
    "job_handler": "handlers",
    "schedule": "schedules",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    import importlib

    if name == "registry":
        return importlib.import_module(".registry", __name__)
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
