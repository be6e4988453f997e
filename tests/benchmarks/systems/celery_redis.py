"""Celery over Redis: two prefork processes, a task is acknowledged after it ran."""

from tests.benchmarks import services
from tests.benchmarks.processes import environ
from tests.benchmarks.systems.contender import PYTHON, Contender

PREFIX = "BENCH_CELERY_PREFIX"
QUEUE = "celery"
NAME = "Celery over Redis, prefork 2, late ack"


def prefix_of(url):
    """Return the prefix of all Redis keys of the run that uses this database."""
    return f"{url.rpartition('/')[2]}:"


def environ_of_url(url):
    return environ(
        **{PREFIX: prefix_of(url), "BENCH_REDIS_URL": services.redis_url()},
    )


def fill(total):
    from tests.benchmarks.systems.celery_app import app, noop

    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(total):
            noop.apply_async(producer=producer)


def client():
    import redis

    return redis.Redis.from_url(services.redis_url())


def remaining(database):
    """Count what waits and what was delivered and not acknowledged."""
    prefix = prefix_of(database.url)
    with client() as redis:
        return redis.llen(prefix + QUEUE) + redis.hlen(prefix + "unacked")


def clean(database):
    with client() as redis:
        for key in redis.scan_iter(prefix_of(database.url) + "*"):
            redis.delete(key)


COMMAND = [
    PYTHON,
    "-m",
    "celery",
    "--app=tests.benchmarks.systems.celery_app",
    "worker",
    "--pool=prefork",
    "--concurrency=2",
    "--loglevel=WARNING",
    "--without-gossip",
    "--without-mingle",
]

CONTENDERS = [
    Contender(
        name=NAME,
        module="celery_redis",
        how="acks_late, ignore_result, prefetch as by default, no gossip, no mingle",
        commands=[COMMAND],
        remaining=remaining,
        expected=1500,
        environ=environ_of_url,
        distributions=("celery", "redis"),
        problem=services.redis_problem,
        clean=clean,
    )
]
