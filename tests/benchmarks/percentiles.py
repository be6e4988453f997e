"""Percentiles by nearest rank: always a value that was measured."""

import math


def of(values, percent):
    """Return the smallest value that `percent` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]
