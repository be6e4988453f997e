"""What stands in a secret's place."""

MASK = "********"
"""Django's own pages write the same number of asterisks."""

AFTER_VALUE = "\\\"'`)]}<>,;. \t"
"""Punctuation that follows a value and is not counted to it."""


def core(value: str) -> str:
    """Return a value without the punctuation that follows it."""
    return value.rstrip(AFTER_VALUE)


def covered(value: str) -> str:
    """Return the mask, with the punctuation that follows the value; nothing else is left."""
    inner = core(value)
    return MASK + value[len(inner) :] if inner else value
