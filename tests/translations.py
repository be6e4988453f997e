"""The catalogs of translations: made from the sources, and compiled, without GNU gettext.

    python -m tests.translations update     # new and changed texts into each django.po
    python -m tests.translations compile    # each django.po into the django.mo beside it

Django reads the templates, Babel the Python sources and the catalogs.
"""

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

PACKAGE = Path(__file__).resolve().parent.parent / "django_jobqueue"
LANGUAGES = ("de", "es")

KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy"), None),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ((1, "c"), 2, 3)),
}


def main(command: str) -> None:
    for language in LANGUAGES:
        {"update": update, "compile": compiled}[command](language)


def po_path(language: str) -> Path:
    return PACKAGE / "locale" / language / "LC_MESSAGES" / "django.po"


def catalog_of(language: str) -> Catalog:
    """Return what the translators wrote."""
    with po_path(language).open("rb") as file:
        return read_po(file, locale=language, domain="django", ignore_obsolete=True)


def template() -> Catalog:
    """Return every text of the sources that is marked for translation."""
    found = Catalog(charset="utf-8")
    for path in sorted(PACKAGE.rglob("*.py")):
        add_from(found, path.read_bytes())
    for path in sorted(PACKAGE.rglob("*.html")):
        # What is no tag becomes rows of X. Brackets let them be Python, whatever their indent.
        add_from(found, f"({templatize(path.read_text())}\n)".encode())
    return found


def add_from(found: Catalog, source: bytes) -> None:
    for _line, message, comments, context in extract("python", BytesIO(source), KEYWORDS):
        found.add(message, context=context, auto_comments=comments)


def update(language: str) -> None:
    """Add new texts, untranslated, and take out those that are gone. Translations stay."""
    path = po_path(language)
    # Headers are kept as they were written: what Babel would write changes with every run.
    header = path.read_text().partition("\n\n")[0]
    catalog = catalog_of(language)
    catalog.update(template(), no_fuzzy_matching=True, update_header_comment=False)
    written = BytesIO()
    write_po(written, catalog, omit_header=True, sort_output=True, ignore_obsolete=True, width=100)
    path.write_text(f"{header}\n\n{written.getvalue().decode().strip()}\n")
    for message in untranslated(catalog):
        print(f"{language}: {message!r}")


def untranslated(catalog: Catalog) -> Iterator[object]:
    """Yield what lacks a translation, or one of its plural forms, or a translator's decision."""
    for message in catalog:
        texts = message.string if message.pluralizable else (message.string,)
        if message.id and (message.fuzzy or not all(texts)):
            yield message.id


def compiled(language: str) -> None:
    """Write the binary catalog that Django loads."""
    with po_path(language).with_suffix(".mo").open("wb") as file:
        write_mo(file, catalog_of(language))


if __name__ == "__main__":
    main(*sys.argv[1:])
