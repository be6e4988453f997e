"""The written pages, as the tests read them."""

import importlib.util
import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

BLOCK = re.compile(
    r"^```(?:\{code-block\} )?python\n(?::caption: (?P<caption>[^\n]*)\n\n)?(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    page: str
    caption: str
    code: str

    def __str__(self):
        return f"{self.page}: {self.caption or self.code.splitlines()[0]}"


def examples():
    return [
        Example(page.name, match["caption"] or "", match["code"])
        for page in PAGES
        for match in BLOCK.finditer(page.read_text())
    ]


def example(page, caption):
    (code,) = [found.code for found in examples() if (found.page, found.caption) == (page, caption)]
    return code


def for_this_django(code):
    """Return an example as its page says to write it before Django 6.0, if that is what runs."""
    if importlib.util.find_spec("django.tasks") is not None:
        return code
    return code.replace("from django.tasks", "from django_tasks")


def table_rows(page, heading):
    """Return the cells of the table whose first heading is that, without backticks around them."""
    lines = iter(page.read_text().splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            next(lines)
            table = takewhile(lambda row: row.startswith("|"), lines)
            return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in table]
    raise LookupError(f"{page.name} has no table headed {heading}")
