"""One call of a task, as the payload of a job holds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from django.utils.dateparse import parse_datetime

from ..exceptions import InvalidCall, shown
from .api import normalize_json

KEYS = frozenset(("args", "kwargs", "backend", "run_after"))


@dataclass(frozen=True, slots=True)
class Call:
    """What a task is called with, by the alias `backend`; None stands for the task's own.

    `run_after` is kept here because a job that is due forgets its time.
    """

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    backend: str | None = None
    run_after: datetime | None = None

    @classmethod
    def made(
        cls,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        backend: str,
        run_after: datetime | None,
    ) -> "Call":
        """Return a new call; raise TypeError or ValueError for arguments that JSON cannot hold."""
        given = cast("list[Any]", normalize_json(list(args)))
        named = cast("dict[str, Any]", normalize_json(dict(kwargs)))
        return cls(given, named, backend, run_after)

    @classmethod
    def of(cls, payload: object) -> "Call":
        """Return the call in a payload, whose keys may be missing; raise InvalidCall for others."""
        if not isinstance(payload, Mapping):
            raise InvalidCall(f"The payload is {shown(payload)}; expected an object.")
        for key in payload.keys() - KEYS:
            raise InvalidCall(
                f"The payload has the key {shown(key)}; expected {', '.join(sorted(KEYS))}."
            )
        return cls(
            part(payload, "args", list, "an array") or [],
            part(payload, "kwargs", dict, "an object") or {},
            part(payload, "backend", str, "a string"),
            moment(part(payload, "run_after", str, "a string")),
        )

    def payload(self) -> dict[str, Any]:
        """Return the payload of a job."""
        payload = {"args": self.args, "kwargs": self.kwargs, "backend": self.backend}
        if self.run_after is not None:
            payload["run_after"] = self.run_after.isoformat()
        return payload


def is_call(payload: object) -> bool:
    """Whether a payload was made by a task backend."""
    try:
        return Call.of(payload).backend is not None
    except InvalidCall:
        return False


def part(payload: Mapping[str, Any], name: str, kind: type, words: str) -> Any:
    """Return a part of a payload, None where it is missing; raise InvalidCall for another kind."""
    value = payload.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidCall(f"The payload's {name} is {shown(value)}; expected {words}.")
    return value


def moment(text: str | None) -> datetime | None:
    """Return a time that `payload` wrote; raise InvalidCall for another text."""
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise InvalidCall(f"The payload's run_after is {shown(text)}; expected an ISO 8601 time.")
    return found
