"""Statistics of a text."""

import io
import re
from collections import Counter
from typing import Any, BinaryIO

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
FREQUENT_WORDS = 8
SHORTEST_FREQUENT_WORD = 4


def statistics(stream: BinaryIO) -> dict[str, Any]:
    """Count lines, words and characters, and find the most frequent longer words.

    Bytes that are no UTF-8 are replaced: a text with one bad byte still has words.
    """
    lines = characters = words = 0
    seen: Counter[str] = Counter()
    for line in io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace"):
        lines += 1
        characters += len(line)
        found = WORD.findall(line.lower())
        words += len(found)
        seen.update(word for word in found if len(word) >= SHORTEST_FREQUENT_WORD)
    return {
        "lines": lines,
        "words": words,
        "characters": characters,
        "distinct_longer_words": len(seen),
        # A list, because a JSON object does not keep its order in every database.
        "frequent_words": ordered(seen)[:FREQUENT_WORDS],
    }


def ordered(seen: Counter[str]) -> list[tuple[str, int]]:
    """Return the most frequent first, equals by alphabet, so that repeats agree."""
    return sorted(seen.items(), key=lambda item: (-item[1], item[0]))
