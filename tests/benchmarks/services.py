"""The servers that the benchmark needs or could use."""

import contextlib
import os

from tests import databases, throwaway_postgres

REDIS_URL = "redis://127.0.0.1:6379/9"


@contextlib.contextmanager
def postgresql(environ=os.environ):
    """Yield the URL of a PostgreSQL server: the one named, the one here, else one of our own."""
    settings = databases.chosen_settings(dict(environ) | {"TEST_DATABASE": databases.POSTGRESQL})
    if databases.server_answers(settings):
        yield databases.url_of(settings)
        return
    if environ.get("DATABASE_URL"):
        raise SystemExit(
            f"No PostgreSQL server answers at {settings['HOST'] or 'the socket'}, "
            f"port {settings['PORT'] or 5432}. Start it, or correct DATABASE_URL."
        )
    print("No PostgreSQL server answers here: a throw-away one is started.", flush=True)
    with throwaway_postgres.running() as url:
        yield url


def redis_url():
    """Return the URL of the Redis database to use, the ninth of the one here unless named."""
    return os.environ.get("BENCH_REDIS_URL", REDIS_URL)


def redis_problem():
    """Return why Redis cannot be used, or None."""
    try:
        import redis
    except ImportError as error:
        return f"the client is not installed: {error}"
    try:
        with redis.Redis.from_url(redis_url(), socket_connect_timeout=3) as client:
            client.ping()
    except redis.RedisError as error:
        return f"no Redis server answers: {type(error).__name__}"
    return None
