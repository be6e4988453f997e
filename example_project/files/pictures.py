"""Reduced pictures."""

import io
from dataclasses import dataclass
from typing import BinaryIO

from PIL import Image, ImageOps, UnidentifiedImageError

LONGEST_SIDE = 480


class NotAnImage(Exception):
    """The bytes are not an image that can be read."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A reduced picture as PNG, and what the original was."""

    png: bytes
    format: str
    width: int
    height: int


def reduced(stream: BinaryIO) -> Picture:
    """Return a PNG of at most `LONGEST_SIDE` pixels a side; raises NotAnImage."""
    # Read first: what goes wrong after this lies in the content, and no retry mends it.
    content = stream.read()
    try:
        with Image.open(io.BytesIO(content)) as image:
            image_format, (width, height) = image.format or "unknown", image.size
            upright = ImageOps.exif_transpose(image).convert("RGBA")
    except UnidentifiedImageError:
        raise NotAnImage("its content has no known image format") from None
    except Exception as error:
        # Pillow's decoders raise many kinds of errors for damaged content.
        raise NotAnImage(f"its content cannot be read ({error})") from error
    upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    output = io.BytesIO()
    upright.save(output, "PNG", optimize=True)
    return Picture(output.getvalue(), image_format, width, height)
