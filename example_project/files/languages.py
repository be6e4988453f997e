"""A guess at a text's language, by its most common short words."""

from typing import Any

from .texts import WORD

COMMON_WORDS = {
    "English": {"the", "and", "of", "to", "is", "in", "it", "that", "with", "for", "are"},
    "German": {"der", "die", "und", "das", "ist", "nicht", "ein", "mit", "den", "zu", "im"},
    "French": {"le", "la", "les", "et", "des", "une", "est", "dans", "pour", "que", "du"},
    "Spanish": {"el", "los", "las", "y", "que", "una", "es", "por", "con", "para", "del"},
}
LEAST_SHARE = 0.05


def guess(text: str) -> dict[str, Any]:
    """Return the likeliest language, and which share of the words speaks for it."""
    words = WORD.findall(text.lower())
    hits = {name: sum(word in common for word in words) for name, common in COMMON_WORDS.items()}
    name = max(hits, key=lambda language: hits[language])
    share = hits[name] / len(words) if words else 0.0
    return {
        "language": name if share >= LEAST_SHARE else "unknown",
        "share": round(share, 3),
        "words": len(words),
    }
