"""What a probe found out."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a probe is not healthy: a stable code for machines, a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of one probe; healthy when it found no problem.

    `measures`: numbers by name, None where there is nothing to measure. They tell counts and
    durations in seconds, and no names.
    """

    probe: str
    problems: tuple[Problem, ...] = ()
    measures: Mapping[str, float | int | None] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def public(self) -> dict[str, object]:
        """Return what a stranger may see: codes and numbers, no texts."""
        return {
            "probe": self.probe,
            "healthy": self.healthy,
            "problems": [problem.code for problem in self.problems],
            "measures": dict(self.measures),
        }

    def full(self) -> dict[str, object]:
        """Return the same with the texts."""
        texts = [{"code": problem.code, "text": problem.text} for problem in self.problems]
        return {**self.public(), "problems": texts}
