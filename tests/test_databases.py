from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import databases, throwaway_postgres

POSTGRESQL_URL = "postgresql://ann:se%2Fcret@db.example:6543/site"


def test_postgresql_is_the_default():
    assert databases.chosen_kind({}) == databases.POSTGRESQL
    assert databases.chosen_settings({})["HOST"] == "127.0.0.1"


def test_an_unknown_kind_is_refused_with_the_kinds_there_are():
    with pytest.raises(ValueError, match="'oracle'; expected postgresql or sqlite"):
        databases.chosen_kind({"TEST_DATABASE": "oracle"})


@pytest.mark.parametrize(
    ("kind", "url", "counts"),
    [
        ("postgresql", POSTGRESQL_URL, True),
        ("postgresql", "postgres://ann@db.example/site", True),
        ("postgresql", "sqlite:////somewhere/site.sqlite3", False),
        ("sqlite", "sqlite:////somewhere/site.sqlite3", True),
        ("sqlite", POSTGRESQL_URL, False),
        ("sqlite", "", False),
    ],
)
def test_a_database_url_counts_when_it_is_of_the_chosen_kind(kind, url, counts):
    environ = {"TEST_DATABASE": kind, "DATABASE_URL": url}

    assert databases.chosen_url(environ) == (url if counts else None)


def test_a_url_is_read_into_settings():
    assert databases.settings_of(POSTGRESQL_URL) == {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "db.example",
        "PORT": "6543",
        "USER": "ann",
        "PASSWORD": "se/cret",
        "NAME": "site",
    }


@given(
    name=st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1),
    password=st.text(st.characters(codec="ascii", categories=("L", "N", "P"))),
)
def test_a_process_reads_the_settings_that_its_test_wrote(name, password):
    settings = databases.settings_of(POSTGRESQL_URL) | {"NAME": name, "PASSWORD": password}

    assert databases.settings_of(databases.url_of(settings)) == settings


@pytest.mark.parametrize("path", ["/somewhere/a b?.sqlite3", "relative/site.sqlite3"])
def test_a_process_finds_the_file_that_its_test_uses(path):
    settings = databases.sqlite_settings(Path(path))

    assert databases.settings_of(databases.url_of(settings)) == settings


def test_the_tests_run_on_the_chosen_database(db, settings, tmp_path_factory):
    database = settings.DATABASES["default"]

    assert database["ENGINE"] in databases.ENGINES.values()
    if database["ENGINE"] == databases.ENGINES[databases.SQLITE]:
        assert Path(database["NAME"]).is_relative_to(tmp_path_factory.getbasetemp())
    else:
        assert database["NAME"].startswith("test_")


def test_a_throw_away_server_answers_until_it_is_stopped():
    pytest.importorskip("psycopg")
    with throwaway_postgres.running() as url:
        settings = databases.settings_of(url)
        assert databases.server_answers(settings)

    assert not databases.server_answers(settings)
