"""The folder whose files the demonstration works on."""

import errno
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from ..files.models import Document

SAMPLES = Path(__file__).resolve().parent.parent / "sample_files"


class UnusableFolder(Exception):
    """The folder cannot be used: the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The files to work on, and how many were left out."""

    path: Path
    files: list[Path]
    too_large: int
    unreadable: int
    over_limit: int


def content_of(folder: Path, *, limit: int) -> FolderContent:
    """Return the files right inside the folder, by name; hidden and empty ones are left out."""
    folder = folder.expanduser().absolute()
    files, too_large, unreadable = [], 0, 0
    for path in candidates(folder):
        try:
            check_name(path)
            with path.open("rb") as stream:
                empty = not stream.read(1)
            size = path.stat().st_size
        except (OSError, UnicodeEncodeError):
            unreadable += 1
            continue
        if size > settings.MAX_UPLOAD_MIB * 1024 * 1024:
            too_large += 1
        elif not empty:
            files.append(path)
    if not files:
        raise UnusableFolder(explanation(folder, too_large, unreadable))
    over_limit = max(0, len(files) - limit)
    return FolderContent(folder, files[:limit], too_large, unreadable, over_limit)


def check_name(path: Path) -> None:
    """Raise when no database row can hold the path: it is no text, or too long."""
    text = str(path)
    text.encode()
    if len(text) > (Document._meta.get_field("folder_path").max_length or 0):
        raise OSError(errno.ENAMETOOLONG, "the path is too long")


def candidates(folder: Path) -> list[Path]:
    """Return the regular files of the folder."""
    try:
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise UnusableFolder(f'The folder "{folder}" {what}; name a folder with some files.')
        names = sorted(folder.iterdir())
        return [path for path in names if path.is_file() and not path.name.startswith(".")]
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnusableFolder(
            f'The folder "{folder}" cannot be read ({reason}); name one that can.'
        ) from None


def explanation(folder: Path, too_large: int, unreadable: int) -> str:
    """Say why there is nothing to do."""
    if not too_large and not unreadable:
        return f'The folder "{folder}" has no files with content; name one that has.'
    return (
        f'The folder "{folder}" has no file that can be used: {unreadable} cannot be read, '
        f"{too_large} are larger than {settings.MAX_UPLOAD_MIB} MiB; name another folder."
    )
