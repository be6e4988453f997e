"""`@schedule`: what the code declares. Usable before Django is set up, settings included."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from .. import registry
from ..conf import settings, warn_once
from ..cron import problems_of
from ..enqueueing import json_object, priority_of, text
from ..exceptions import InvalidJob, InvalidSchedule
from ..handlers.base import JobHandler
from ..jsonvalues import text_problem
from ..logs import get_logger
from ..states import DEFAULT_QUEUE, CatchUp

logger = get_logger(__name__)

Target = TypeVar("Target")

NAME_LENGTH = 200
UTC = "UTC"
CATCH_UP_LIMIT = 10

DECLARED_ON = "__jobqueue_schedules__"
"""Where a handler keeps its schedules. `job_handler` copies it from the function it wraps."""


_holders: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Whatever has a schedule, by its id."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A schedule as the code wants it; `type` is known once its handler is registered."""

    name: str
    cron: str
    timezone: str
    payload: dict[str, Any]
    catch_up: str
    limit: int
    queue: str
    priority: int
    type: str = ""


def schedule(
    name: str,
    cron: str,
    *,
    timezone: str = UTC,
    payload: Mapping[str, Any] | None = None,
    catch_up: str = CatchUp.SKIP,
    limit: int = CATCH_UP_LIMIT,
    queue: str = DEFAULT_QUEUE,
    priority: int = 0,
) -> Callable[[Target], Target]:
    """Enqueue a job of the decorated handler at every tick of `cron`.

    Stands above or below `@job_handler`, or on a `JobHandler` class; several on one handler are
    fine. `name`: unique in the site, stable, since the row keeps it. `cron`: minute, hour, day of
    month, month, day of week, in `timezone`. `catch_up`: what becomes of ticks that no worker was
    there for: "skip" (nothing), "once" (one job for all), "all" (one each, the last `limit`).

    Raises InvalidSchedule, naming what is wrong.
    """
    check_name(name)
    if catch_up not in CatchUp.values:
        expected = ", ".join(CatchUp.values)
        raise InvalidSchedule(f"Schedule {name!r}: catch_up is {catch_up!r}; expected {expected}.")
    for problem in problems_of(cron, timezone, limit).values():
        raise InvalidSchedule(f"Schedule {name!r}: {problem}.")
    try:
        declaration = Declaration(
            name=name,
            cron=cron,
            timezone=timezone,
            payload=json_object(payload),
            catch_up=str(CatchUp(catch_up)),
            limit=limit,
            queue=text("queue", queue),
            priority=priority_of(priority),
        )
    except InvalidJob as error:
        raise InvalidSchedule(f"Schedule {name!r}: {error}") from None

    def decorate(target: Target) -> Target:
        if not is_handler(target):
            raise InvalidSchedule(
                f"Schedule {name!r} is on {target!r}; expected a handler: a function with "
                "@job_handler, or a JobHandler class."
            )
        before = vars(target).get(DECLARED_ON, ())
        if any(other.name == name for other in before):
            raise InvalidSchedule(f"Schedule {name!r} is declared twice on {target!r}.")
        setattr(target, DECLARED_ON, (*before, declaration))
        _holders[id(target)] = target
        return target

    return decorate


def check_name(name: object) -> None:
    """Raise InvalidSchedule for a name that a row cannot have."""
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_LENGTH:
        raise InvalidSchedule(
            f"A schedule's name is {name!r}; expected a string of 1 to {NAME_LENGTH} characters."
        )
    if problem := text_problem(name):
        raise InvalidSchedule(f"The name {name!r} of a schedule {problem}.")


def is_handler(target: object) -> bool:
    """Whether a schedule may stand on it."""
    if inspect.isclass(target):
        return issubclass(target, JobHandler)
    return inspect.isfunction(target) or isinstance(target, JobHandler)


def declared() -> dict[str, Declaration]:
    """Return the schedules of all registered handlers, and the package's own, by their name.

    Of two with one name the first type's counts, and a warning says so.
    """
    found: dict[str, Declaration] = {}
    for declaration in (*built_in(), *of_handlers()):
        first = found.setdefault(declaration.name, declaration)
        if first is not declaration:
            warn_once(
                logger,
                "Schedule %r is declared for %s and for %s; the second is ignored. Give it another "
                "name.",
                declaration.name,
                first.type,
                declaration.type,
            )
    return found


def of_handlers() -> Iterator[Declaration]:
    """Yield what stands on registered handlers, in the order of their types."""
    for job_type, declaration in placed():
        yield replace(declaration, type=job_type)


def placed() -> Iterator[tuple[str, Declaration]]:
    """Yield the types of registered handlers with what stands on each, as it was written."""
    for job_type, handler in sorted(registry.handlers().items()):
        # A subclass does not inherit: it would declare the same name for another type.
        for holder in (handler, type(handler)):
            for declaration in vars(holder).get(DECLARED_ON, ()):
                yield job_type, declaration


def stranded() -> list[tuple[str, str]]:
    """Return the name of each schedule that never fires, and what it stands on, in order.

    That is what no registered handler is, or is made of. Only what a module holds that is loaded:
    not what a function made, and not the modules that failed to import.
    """
    reached = {id(declaration) for _, declaration in placed()}
    found = []
    for holder in list(_holders.values()):
        owner = holder if hasattr(holder, "__qualname__") else type(holder)
        if owner.__module__ not in sys.modules or "<locals>" in owner.__qualname__:
            continue
        place = f"{owner.__module__}.{owner.__qualname__}"
        missed = [d for d in vars(holder)[DECLARED_ON] if id(d) not in reached]
        found += [(declaration.name, place) for declaration in missed]
    return sorted(found)


def built_in() -> Iterator[Declaration]:
    """Yield the nightly purge, if old jobs are to be purged."""
    from django.utils.timezone import get_default_timezone_name

    from ..handlers.purge import PURGE_PRIORITY, PURGE_TYPE

    if settings.PURGE_ENABLED and registry.get(PURGE_TYPE) is not None:
        yield Declaration(
            name=PURGE_TYPE,
            cron="17 3 * * *",
            timezone=get_default_timezone_name(),
            payload={},
            catch_up=CatchUp.ONCE.value,
            limit=1,
            queue=DEFAULT_QUEUE,
            priority=PURGE_PRIORITY,
            type=PURGE_TYPE,
        )
