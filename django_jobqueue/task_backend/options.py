"""`OPTIONS` of an alias in `settings.TASKS`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from ..exceptions import shown
from ..policy import ExecutionProfile, retention_problem
from ..policy.profile import seconds_of
from .limits import LIMITS, Limits, provider_problem

DedupFunction = Callable[[Any, list[Any], dict[str, Any]], str | None]
"""From a task, its args and its kwargs to a key, or None for none."""

AT_ENQUEUE = ("database", "dedup")

NAMES = (*LIMITS, *AT_ENQUEUE, "result_retention")


class OptionProblem(NamedTuple):
    """What is wrong with one option."""

    text: str
    hint: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an alias, checked.

    `limits`: of the tasks that are defined with it. `database`: where their jobs go, None for where
    the router writes `Job`. `dedup`: names calls of which one at a time may wait or run.
    `result_retention`: how long ended jobs are kept, None for the site's `HISTORY_RETENTION`.
    """

    limits: Limits = Limits()  # noqa: RUF009 (frozen)
    database: str | None = None
    dedup: DedupFunction | None = None
    result_retention: timedelta | None = None

    @classmethod
    def of(cls, alias: str, given: Mapping[str, Any]) -> "Options":
        """Return the options; raise ImproperlyConfigured naming the first that is wrong."""
        for problem in problems_of(alias, given):
            raise ImproperlyConfigured(f"{problem.text} {problem.hint}")
        dedup = given.get("dedup")
        retention = given.get("result_retention")
        return cls(
            Limits(**{name: given.get(name) for name in LIMITS}),
            given.get("database"),
            import_string(dedup) if isinstance(dedup, str) else dedup,
            None if retention is None else timedelta(seconds=seconds_of(retention)),
        )

    @classmethod
    def of_handlers(cls, alias: str, given: object) -> "Options":
        """Return those that a handler heeds: all but where and whether its jobs are enqueued."""
        if not isinstance(given, Mapping):
            return cls()
        return cls.of(alias, {name: v for name, v in given.items() if name not in AT_ENQUEUE})


def problems_of(alias: str, given: object) -> Iterator[OptionProblem]:
    """Yield what is wrong with the options of an alias, in the order they are given."""
    if not isinstance(given, Mapping):
        yield OptionProblem(
            f'TASKS["{alias}"]["OPTIONS"] is {shown(given)}; expected a dict.',
            "Correct it, or leave it out.",
        )
        return
    for name, value in given.items():
        place = f'TASKS["{alias}"]["OPTIONS"][{name!r}]'
        if name not in NAMES:
            hint = f"Remove it, or use one of: {', '.join(NAMES)}."
            yield OptionProblem(f"{place} is no option of this backend.", hint, is_known=False)
        elif value is not None and (problem := problem_of(name, value)):
            hint = "Correct it, or leave it out."
            yield OptionProblem(f"{place} is {shown(value)}; {problem}.", hint)


def problem_of(name: str, value: object) -> str | None:
    """Say what is wrong with one known option, or None."""
    match name:
        case "max_attempts" | "max_runtime":
            return expected(ExecutionProfile(**{name: value}).problem())  # type: ignore[arg-type]
        case "provider":
            return provider_problem(value)
        case "database":
            known = list(connections)
            return None if value in known else f"expected one of DATABASES: {', '.join(known)}"
        case "dedup":
            return dedup_problem(value)
        case _:
            return expected(retention_problem(value))


def expected(problem: str | None) -> str | None:
    """Return the part of a problem that follows the value."""
    return problem and problem.rpartition("; ")[2]


def dedup_problem(value: object) -> str | None:
    """Say what is wrong with a dedup function or its path, or None."""
    if isinstance(value, str):
        try:
            value = import_string(value)
        except Exception as error:  # noqa: BLE001 (the site's own module)
            return f"it cannot be imported: {error}"
    return None if callable(value) else "expected a function or its dotted path"
