"""Results as the pages show them: a heading and a few facts each."""

from dataclasses import dataclass
from typing import Any

from . import steps
from .models import Result
from .progress import label_of


@dataclass(frozen=True, slots=True)
class Finding:
    """What one step found out."""

    heading: str
    facts: list[tuple[str, str]]
    result: Result


def findings_of(results: list[Result]) -> list[Finding]:
    """Return a finding per result, in the order of the steps."""
    order = list(FACTS)
    known = sorted(
        (result for result in results if result.step in FACTS),
        key=lambda result: order.index(result.step),
    )
    return [
        Finding(label_of(result.step), FACTS[result.step](result.data), result) for result in known
    ]


def checksum(data: dict[str, Any]) -> list[tuple[str, str]]:
    """SHA-256."""
    return [("SHA-256", data.get("sha256", ""))]


def text_statistics(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Counts and frequent words."""
    frequent = data.get("frequent_words", [])
    return [
        ("Lines", f"{data.get('lines', 0):,}"),
        ("Words", f"{data.get('words', 0):,}"),
        ("Characters", f"{data.get('characters', 0):,}"),
        ("Frequent words", ", ".join(f"{word} ({n})" for word, n in frequent)),
    ]


def language(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The guess."""
    return [("Probably", data.get("language", "unknown"))]


def thumbnail(data: dict[str, Any]) -> list[tuple[str, str]]:
    """What the original is."""
    size = f"{data.get('width')} × {data.get('height')} pixels"
    return [("Original", f"{data.get('format')}, {size}")]


def scan(data: dict[str, Any]) -> list[tuple[str, str]]:
    """What the simulated scanner counted."""
    return [("Zero bytes", f"{data.get('zero_bytes', 0):,}"), ("Note", "Simulated slow tool")]


def archive(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The key in the simulated archive."""
    return [("Key", data.get("key", "")), ("Note", "Simulated service; nothing is sent")]


FACTS = {
    steps.CHECKSUM: checksum,
    steps.TEXT_STATISTICS: text_statistics,
    steps.LANGUAGE: language,
    steps.THUMBNAIL: thumbnail,
    steps.SCAN: scan,
    steps.ARCHIVE: archive,
}
