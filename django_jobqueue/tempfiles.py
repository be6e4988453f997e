"""Temporary files of handlers, named so that the janitor finds those of a killed worker."""

import tempfile
from typing import IO, Any

from .conf import temp_prefix


def temporary_file(mode: str = "w+b", *, suffix: str = "", **options: Any) -> IO[Any]:
    """Open a new file with this site's prefix; it is deleted when it is closed.

    A handler that is killed leaves it behind, and the worker's janitor removes it six hours
    after its last change. `options` are those of `tempfile.NamedTemporaryFile`, but for its
    `prefix` and `dir`.
    """
    return tempfile.NamedTemporaryFile(mode, suffix=suffix, prefix=temp_prefix(), **options)
