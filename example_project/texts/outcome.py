"""A task's result as the page shows it."""

from dataclasses import dataclass
from typing import Any

from ..files.progress import STATE_LABELS
from .framework import TaskResultStatus

STATES = {
    TaskResultStatus.READY: "waiting",
    TaskResultStatus.RUNNING: "running",
    TaskResultStatus.SUCCESSFUL: "done",
    TaskResultStatus.FAILED: "failed",
}


def shown(result: Any) -> dict[str, Any]:
    """Return what the template cannot ask a result for: words, and the value if there is one."""
    state = STATES[result.status]
    if state == "waiting" and result.attempts:
        state = "retrying"
    done = result.status == TaskResultStatus.SUCCESSFUL
    return {
        "state": state,
        "label": STATE_LABELS[state],
        # Asking for the value of a task that has none raises.
        "value": result.return_value if done else None,
        "text": result.args[0] if result.args else result.kwargs.get("text", ""),
        "errors": [Attempt(number, error) for number, error in enumerate(result.errors, start=1)],
    }


@dataclass(frozen=True, slots=True)
class Attempt:
    """What went wrong in one attempt."""

    number: int
    error: Any

    @property
    def class_path(self) -> str:
        """The class of the exception."""
        return self.error.exception_class_path

    @property
    def message(self) -> str:
        """What the exception said: the end of the traceback, without the class."""
        last = self.traceback.strip().rpartition("\n")[2]
        return last.removeprefix(f"{self.class_path}: ")

    @property
    def traceback(self) -> str:
        """Where it was raised; a page for the public would not show it."""
        return self.error.traceback
