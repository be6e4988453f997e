"""The catalogs of translations against the sources, and what ships against the catalogs."""

import re
from collections import Counter

import pytest
from babel.messages.mofile import read_mo

from tests import translations
from tests.pages import ROOT, table_rows
from tests.translations import LANGUAGES, catalog_of, po_path, template, untranslated

PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|\{\w*\}|</?\w+[^>]*>")

in_each_language = pytest.mark.parametrize("language", LANGUAGES)


def keys(catalog):
    return {(message.context, message.id) for message in catalog if message.id}


def forms(message):
    """Pair each text of the sources with its translations."""
    if not message.pluralizable:
        return [(message.id, message.string)]
    singular, plural = message.id
    first, *others = message.string
    return [(singular, first), *((plural, other) for other in others)]


def placeholders(text):
    return Counter(PLACEHOLDER.findall(text))


def texts(catalog):
    return {
        (message.context, as_tuple(message.id)): as_tuple(message.string)
        for message in catalog
        if message.id
    }


def as_tuple(text):
    return (text,) if isinstance(text, str) else tuple(text)


def test_the_sources_are_read():
    found = keys(template())

    assert (None, "Retry job") in found  # Python
    assert (None, "What went wrong") in found  # a template
    assert ("queues", "all") in found
    assert (None, ("%(count)s job", "%(count)s jobs")) in found
    assert (None, "no error text") in found  # an argument of a filter


@pytest.mark.parametrize("path", sorted(translations.PACKAGE.rglob("*.html")), ids=lambda p: p.name)
def test_a_template_has_no_words_that_are_not_marked(path):
    text = path.read_text()
    text = re.sub(r"{% blocktrans.*?{% endblocktrans\w* %}", "", text, flags=re.DOTALL)
    text = re.sub(r"{% block bodyclass %}.*", "", text)
    attributes = re.findall(r'\b(?:title|aria-label|alt|placeholder)="([^"]*)"', text)
    shown = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}|<[^>]*>|&\w+;", " ", text, flags=re.DOTALL)
    read_out = re.sub(r"{%.*?%}|{{.*?}}", " ", " ".join(attributes))

    assert set(re.findall(r"[^\W\d_]\w*", f"{shown} {read_out}")) <= {"p50", "p95"}


@in_each_language
def test_every_text_is_translated_and_none_is_left_over(language):
    catalog = catalog_of(language)

    assert keys(catalog) == keys(template())
    assert list(untranslated(catalog)) == []
    assert {len(message.string) for message in catalog if message.pluralizable} == {
        catalog.num_plurals
    }


@in_each_language
def test_a_translation_has_the_placeholders_of_its_text(language):
    wrong = [
        (text, translated)
        for message in catalog_of(language)
        if message.id
        for text, translated in forms(message)
        if placeholders(text) != placeholders(translated)
    ]

    assert wrong == []


@in_each_language
def test_a_translation_ends_as_its_text_does(language):
    wrong = [
        (text, translated)
        for message in catalog_of(language)
        if message.id
        for text, translated in forms(message)
        if (text[-1] in ".:?") != (translated[-1] in ".:?") or translated != translated.strip()
    ]

    assert wrong == []


@in_each_language
def test_the_compiled_catalog_is_that_of_the_texts(language):
    with po_path(language).with_suffix(".mo").open("rb") as file:
        compiled = read_mo(file)

    assert texts(compiled) == texts(catalog_of(language))


@in_each_language
def test_a_catalog_says_which_plural_it_means_and_not_when_it_was_made(language):
    header = po_path(language).read_text().partition("\n\n")[0]

    assert f'"Language: {language}\\n"' in header
    assert "nplurals=2; plural=(n != 1);" in header
    assert '"POT-Creation-Date: 2026-01-01 00:00+0000\\n"' in header


@in_each_language
def test_the_two_commands_leave_what_is_up_to_date(language, tmp_path, monkeypatch, capsys):
    before = po_path(language).read_text()
    copy = tmp_path / "django.po"
    copy.write_text(before)
    monkeypatch.setattr(translations, "po_path", lambda language: copy)

    translations.update(language)
    translations.compiled(language)

    assert copy.read_text() == before
    with copy.with_suffix(".mo").open("rb") as file:
        assert texts(read_mo(file)) == texts(catalog_of(language))
    assert capsys.readouterr().out == ""


def test_update_adds_what_is_new_and_takes_out_what_is_gone(tmp_path, monkeypatch, capsys):
    before = po_path("de").read_text()
    copy = tmp_path / "django.po"
    copy.write_text(before.replace('msgid "Retry job"', 'msgid "Retry the job"'))
    monkeypatch.setattr(translations, "po_path", lambda language: copy)

    translations.update("de")

    assert 'msgid "Retry the job"' not in copy.read_text()
    assert 'msgid "Retry job"\nmsgstr ""' in copy.read_text()
    assert capsys.readouterr().out == "de: 'Retry job'\n"


def test_the_glossary_has_the_words_of_the_catalogs():
    rows = table_rows(ROOT / "docs" / "development.md", "Term")
    german, spanish = map(catalog_of, LANGUAGES)

    assert len(rows) > 20
    assert rows == [
        [term, german.get(term).string, spanish.get(term).string] for term, _de, _es in rows
    ]
