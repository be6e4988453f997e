"""Where in the site's own code an import failed."""

import sys
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")


def told(error: BaseException, folder: str) -> str:
    """Return "KeyError: 'missing' (reports/boom.py, line 4)": the error, and whose line raised it.

    `folder`: that of the app, which counts as the site's own wherever it is installed. A syntax
    error is where it is written. Without any line that is known, only the error.
    """
    text: object = error
    place: tuple[str, int] | None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place, text = (error.filename, error.lineno), error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [(frame.filename, frame.lineno or 0) for frame in frames]
        place = innermost(lines, folder)
    named = f"{type(error).__name__}: {text}".rstrip(".")
    return named if place is None else f"{named} ({short(place[0])}, line {place[1]})"


def innermost(lines: Iterable[tuple[str, int]], folder: str) -> tuple[str, int] | None:
    """Return the last file and line that is the site's own; None for none."""
    own = [line for line in lines if is_own(Path(line[0]), Path(folder))]
    return own[-1] if own else None


def is_own(file: Path, folder: Path) -> bool:
    """Whether a file belongs to the site: neither Python's, nor a library's, nor this package's."""
    if not file.is_absolute() or file.is_relative_to(PACKAGE):
        return False  # Not absolute: "<frozen importlib._bootstrap>".
    if file.is_relative_to(folder):
        return True
    return not any(file.is_relative_to(sysconfig.get_path(name)) for name in LIBRARIES)


def short(file: str) -> str:
    """Return the path of a file from where Python found it, as an import names it."""
    roots = [root for root in map(Path, sys.path) if root.is_absolute()]
    found = [Path(file).relative_to(root) for root in roots if Path(file).is_relative_to(root)]
    return str(min(found, key=lambda path: len(path.parts), default=file))
