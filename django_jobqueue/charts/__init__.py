"""Pictures for the admin: SVG made on the server, without a script or a style attribute.

Colours come from classes, which a style sheet fills. Each picture has a title and a description.
"""

from .bars import Bar, bars
from .columns import Column, columns
from .scale import nice_ticks

__all__ = ["Bar", "Column", "bars", "columns", "nice_ticks"]
