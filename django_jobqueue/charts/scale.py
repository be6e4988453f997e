"""Where the lines of an axis go."""

from collections.abc import Sequence
from math import ceil, floor, log10

ROUND = (1, 2, 5, 10)


def nice_ticks(highest: float, most: int = 4) -> Sequence[int]:
    """Return round whole numbers from 0 to at least `highest`, in at most `most` steps."""
    rough = max(highest, 1) / most
    size = 10 ** floor(log10(rough)) if rough >= 1 else 1
    step = next(int(factor * size) for factor in ROUND if factor * size >= rough)
    return range(0, step * ceil(max(highest, 1) / step) + 1, step)
