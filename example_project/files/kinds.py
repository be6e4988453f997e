"""Tells what a file holds, by its name and then by its first bytes."""

import mimetypes

from .models import Kind

# Only what Python itself knows, so that every machine gives the same answer.
TYPES = mimetypes.MimeTypes()
TEXT_TYPES = ("application/json", "application/xml", "image/svg+xml", "application/toml")


def kind_of(name: str, first_bytes: bytes) -> Kind:
    """Return the kind. A name can lie: the steps must expect that."""
    guess, _ = TYPES.guess_type(name, strict=False)
    if guess is not None:
        if guess.startswith("text/") or guess in TEXT_TYPES:
            return Kind.TEXT
        if guess.startswith("image/"):
            return Kind.IMAGE
        return Kind.OTHER
    return Kind.TEXT if looks_like_text(first_bytes) else Kind.OTHER


def looks_like_text(first_bytes: bytes) -> bool:
    """Tell whether the bytes read as UTF-8; the last character may be cut."""
    if b"\0" in first_bytes:
        return False
    try:
        first_bytes.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(first_bytes) - 3 and error.end == len(first_bytes)
    return bool(first_bytes)
