"""Which handler runs which type. The module itself is the registry of the process."""

import threading
import warnings
from collections.abc import Mapping

from .handlers.base import JobHandler
from .policy import ExecutionProfile, retention_problem

_lock = threading.Lock()
_handlers: dict[str, JobHandler] = {}
_version = 0


def register(handler: JobHandler, *, stacklevel: int = 2) -> JobHandler:
    """Make `handler` the one that runs its type, and return it.

    A second registration of a type replaces the first and warns. A profile or a retention that
    cannot be used is dropped whole, with a warning, and the site's defaults apply. Raises
    TypeError for something that is not a handler instance with a usable `type`. `stacklevel`
    says whose line a warning names, as in `warnings.warn`.
    """
    if not isinstance(handler, JobHandler):
        raise TypeError(
            f"register() got {handler!r}; expected an instance of a JobHandler subclass"
        )
    job_type = handler.type
    if not isinstance(job_type, str) or not job_type or job_type != job_type.strip():
        raise TypeError(
            f"{handler!r} has the type {job_type!r}; expected a non-empty string without "
            "surrounding spaces"
        )
    for name, problem in problems(handler).items():
        setattr(handler, name, None)
        warn(f"The {name} of job type {job_type!r} is ignored: {problem}.", stacklevel)
    global _version  # noqa: PLW0603 (the module is the registry)
    with _lock:
        replaced = _handlers.get(job_type)
        _handlers[job_type] = handler
        _version += 1
    if replaced is not None and replaced is not handler:
        warn(
            f"The handler of job type {job_type!r} was registered twice; "
            f"{handler!r} replaces {replaced!r}.",
            stacklevel,
        )
    return handler


def warn(message: str, stacklevel: int) -> None:
    """Warn about the line `stacklevel` calls above `register`."""
    warnings.warn(message, RuntimeWarning, stacklevel=stacklevel + 1)


def problems(handler: JobHandler) -> dict[str, str]:
    """Say which of the handler's optional limits cannot be used, and why."""
    found = {
        "profile": profile_problem(handler.profile),
        "history_retention": retention_problem(handler.history_retention),
    }
    return {name: problem for name, problem in found.items() if problem is not None}


def profile_problem(profile: object) -> str | None:
    """Say what makes a profile unusable; None for a good one, or none at all."""
    if profile is None:
        return None
    if not isinstance(profile, ExecutionProfile):
        return f"it is {profile!r}; expected an ExecutionProfile"
    return profile.problem()


def get(job_type: str) -> JobHandler | None:
    """Return the handler of a type, or None when this process knows none."""
    return _handlers.get(job_type)


def types() -> tuple[str, ...]:
    """Return the registered types, sorted."""
    with _lock:
        return tuple(sorted(_handlers))


def handlers() -> Mapping[str, JobHandler]:
    """Return a copy of the whole registry: type to handler."""
    with _lock:
        return dict(_handlers)


def version() -> int:
    """Return a number that changes with every registration."""
    return _version


def server_only_types() -> tuple[str, ...]:
    """Return the types whose handler can never run on a node, sorted."""
    return tuple(sorted(name for name, handler in handlers().items() if not handler.node_eligible))
