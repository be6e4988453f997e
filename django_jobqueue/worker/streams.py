"""Standard output and error of a process that may have been started without them."""

import os
import sys
from pathlib import Path
from typing import TextIO


def open_closed_streams() -> None:
    """Let a process that was started without stdout or stderr (`>&-`) write to nobody."""
    sys.stdout = sys.stdout or nowhere()
    sys.stderr = sys.stderr or nowhere()


def nowhere() -> TextIO:
    """Open what swallows all text; it stays open to the end of the process."""
    return Path(os.devnull).open("w", encoding="utf-8")
