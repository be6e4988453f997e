"""Which database the tests use.

`TEST_DATABASE` names the kind: `postgresql` (the default) or `sqlite`. `DATABASE_URL` names the
database itself and counts only when it is of that kind. Without it PostgreSQL means the server on
this machine, and SQLite a file in the temporary folder.

A process that a test starts reads the same two variables, so the test hands it `url_of()` its own
database.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

Settings = dict[str, Any]

POSTGRESQL = "postgresql"
SQLITE = "sqlite"
KINDS = (POSTGRESQL, SQLITE)
SCHEMES = {
    "postgres": POSTGRESQL,
    "postgresql": POSTGRESQL,
    "pgsql": POSTGRESQL,
    "sqlite": SQLITE,
    "sqlite3": SQLITE,
}
ENGINES = {
    POSTGRESQL: "django.db.backends.postgresql",
    SQLITE: "django.db.backends.sqlite3",
}
LOCAL_POSTGRESQL = "postgresql://postgres@127.0.0.1:5432/postgres"
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


def chosen_kind(environ: Mapping[str, str]) -> str:
    kind = environ.get("TEST_DATABASE", "") or POSTGRESQL
    if kind not in KINDS:
        raise ValueError(f"TEST_DATABASE is {kind!r}; expected {' or '.join(KINDS)}.")
    return kind


def chosen_url(environ: Mapping[str, str]) -> str | None:
    """Return `DATABASE_URL` when it is of the chosen kind, else None."""
    url = environ.get("DATABASE_URL", "")
    scheme = urlsplit(url).scheme
    return url if SCHEMES.get(scheme) == chosen_kind(environ) else None


def chosen_settings(environ: Mapping[str, str]) -> Settings:
    """Return the Django settings of the database to use. Nothing is connected or started."""
    url = chosen_url(environ)
    if url is not None:
        return settings_of(url)
    if chosen_kind(environ) == POSTGRESQL:
        return settings_of(LOCAL_POSTGRESQL)
    return sqlite_settings(Path(tempfile.gettempdir()) / "django-jobqueue-tests.sqlite3")


def settings_of(url: str) -> Settings:
    parts = urlsplit(url)
    kind = SCHEMES.get(parts.scheme)
    if kind is None:
        raise ValueError(f"A database URL starts with {parts.scheme!r}; expected one of {KINDS}.")
    if kind == SQLITE:
        # Three slashes are a relative path, four an absolute one.
        return sqlite_settings(Path(unquote(parts.path.removeprefix("/"))))
    return {
        "ENGINE": ENGINES[POSTGRESQL],
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "NAME": unquote(parts.path.removeprefix("/")),
    }


def sqlite_settings(path: Path) -> Settings:
    return {"ENGINE": ENGINES[SQLITE], "NAME": str(path), "OPTIONS": dict(SQLITE_OPTIONS)}


def url_of(settings: Mapping[str, Any]) -> str:
    """Return the URL from which `settings_of` makes these settings again."""
    name = str(settings["NAME"])
    if settings["ENGINE"] == ENGINES[SQLITE]:
        return f"sqlite:///{quote(name)}"
    login = quote(settings.get("USER", ""), safe="")
    if settings.get("PASSWORD"):
        login += ":" + quote(settings["PASSWORD"], safe="")
    host = quote(settings.get("HOST", ""), safe="")
    port = f":{settings['PORT']}" if settings.get("PORT") else ""
    return f"postgresql://{login}@{host}{port}/{quote(name, safe='')}"


def server_answers(settings: Mapping[str, Any]) -> bool:
    """Tell whether a PostgreSQL server lets us in there and is new enough for this Django."""
    import psycopg
    from django.db.backends.postgresql.features import DatabaseFeatures

    (minimum,) = DatabaseFeatures.minimum_database_version
    try:
        with psycopg.connect(
            host=settings["HOST"],
            port=settings["PORT"],
            user=settings["USER"],
            password=settings["PASSWORD"],
            dbname=settings["NAME"],
            connect_timeout=3,
        ) as connection:
            return bool(connection.info.server_version // 10_000 >= minimum)
    except psycopg.OperationalError:
        return False
