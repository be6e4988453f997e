"""How long an attempt of a task may run, how often it may start, whose rate limit it shares."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, TypeVar

from ..exceptions import shown
from ..policy import ExecutionProfile
from .api import AnyTask, InvalidTask, Task

Target = TypeVar("Target")

LIMITS_ON = "__jobqueue_limits__"
"""Where a function keeps what `task_limits` said."""

LONGEST_PROVIDER = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one task; None leaves one to whoever is asked next.

    `max_attempts`: how often a job may start. `max_runtime`: the ceiling of an attempt, a timedelta
    or seconds, 0 for none. `provider`: the key under which rate limits are shared.
    """

    max_attempts: int | None = None
    max_runtime: timedelta | float | None = None
    provider: str | None = None

    def or_else(self, others: "Limits") -> "Limits":
        """Return these limits, and those of `others` where these are None."""
        mine = {name: getattr(self, name) for name in LIMITS}
        return Limits(
            **{name: getattr(others, name) if v is None else v for name, v in mine.items()}
        )

    def profile(self) -> ExecutionProfile | None:
        """Return the profile of a handler; None when the site's defaults apply."""
        if self.max_attempts is None and self.max_runtime is None:
            return None
        return ExecutionProfile(self.max_runtime, self.max_attempts)

    def problem(self) -> str | None:
        """Say in words what makes these limits unusable, or None."""
        if problem := ExecutionProfile(self.max_runtime, self.max_attempts).problem():
            return problem
        problem = None if self.provider is None else provider_problem(self.provider)
        return problem and f"provider is {shown(self.provider)}; {problem}"


LIMITS = tuple(field.name for field in fields(Limits))


def provider_problem(value: object) -> str | None:
    """Say what is wrong with the key of a provider, or None."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST_PROVIDER:
        return None
    return f"expected a string of 1 to {LONGEST_PROVIDER} characters"


def check_limits(name: str, limits: Limits) -> None:
    """Raise InvalidTask for limits of a task that cannot be used."""
    if problem := limits.problem():
        raise InvalidTask(f"The limits of task {name} are wrong: {problem}.")


def task_limits(
    *,
    max_attempts: int | None = None,
    max_runtime: timedelta | float | None = None,
    provider: str | None = None,
) -> Callable[[Target], Target]:
    """Limit the decorated task; stands below or above `@task`, on any version of Django.

    `max_attempts`: how often a job may start; `max_runtime`: the ceiling of one attempt, a
    timedelta or seconds, 0 for none; `provider`: the key under which rate limits are shared. What
    is None is left to `OPTIONS` of the alias, then to the site's settings. Other backends ignore
    it. Raises InvalidTask, naming what is wrong.
    """
    limits = Limits(max_attempts, max_runtime, provider)

    def decorate(target: Target) -> Target:
        function: Any = target.func if isinstance(target, Task) else target
        check_limits(getattr(function, "__qualname__", shown(function)), limits)
        setattr(function, LIMITS_ON, limits)
        if isinstance(target, Task):
            from .handler import refresh

            refresh(target.module_path)
        return target

    return decorate


def limits_of(task: AnyTask) -> Limits:
    """Return what `@task` and `task_limits` say of a task, in this order."""
    own = Limits(**{name: getattr(task, name, None) for name in LIMITS})
    said: Limits = getattr(task.func, LIMITS_ON, Limits())
    return own.or_else(said)
