"""Progress while the worker runs: a live table in a terminal, lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from .tally import Step, Tally

LINE_SECONDS = 2.0
BAR_WIDTH = 28
PIPE_WIDTH = 120


class Display:
    """Shows a tally again and again; a context manager."""

    def __init__(self, screen: Console, tally: Tally) -> None:
        self._console = screen
        self._tally = tally
        self._live = Live(console=screen, auto_refresh=False) if screen.is_terminal else None
        self._shown: dict[str, int] = {}
        self._shown_at = time.monotonic() - LINE_SECONDS

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        self.update()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.update(last=True)
        if self._live:
            self._live.stop()

    def update(self, *, last: bool = False) -> None:
        """Show the tally as it is."""
        if self._live:
            self._live.update(table(self._tally), refresh=True)
            return
        state = self._tally.state()
        due = last or time.monotonic() - self._shown_at >= LINE_SECONDS
        if due and state != self._shown:
            self._shown, self._shown_at = state, time.monotonic()
            self._console.print(line(self._tally.all))

    def log(self, text: str) -> None:
        """Print a line of the worker's log above the table."""
        self._console.print(text, style="dim", markup=False, soft_wrap=True)


def console() -> Console:
    """Return the console; a pipe or a file gets lines wide enough to be read."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, width=width)


def line(step: Step) -> str:
    """Return the state in one line."""
    parts = [f"{step.over} of {step.total} jobs are over", f"{step.running} running"]
    if step.waiting_for_retry:
        parts.append(f"{step.waiting_for_retry} waiting for a retry")
    if step.failed:
        parts.append(f"{step.failed} failed")
    return ", ".join(parts)


def table(tally: Tally) -> Table:
    """Return one row per step and one for all."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("Step")
    grid.add_column("")
    grid.add_column("Over", justify="right")
    grid.add_column("Running", justify="right", style="cyan")
    grid.add_column("Retrying", justify="right", style="yellow")
    grid.add_column("Failed", justify="right", style="red")
    for step in [*tally.steps, tally.all]:
        grid.add_row(
            step.label,
            ProgressBar(total=max(step.total, 1), completed=step.over, width=BAR_WIDTH),
            f"{step.over}/{step.total}",
            str(step.running or ""),
            str(step.waiting_for_retry or ""),
            str(step.failed or ""),
        )
    return grid
