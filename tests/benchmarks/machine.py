"""What the numbers were measured with: versions, the machine, the server's settings.

Nothing here names the machine, a path on it or a person.
"""

import contextlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psycopg

from tests.benchmarks import services
from tests.benchmarks.processes import ROOT

DISTRIBUTIONS = (
    "django-jobqueue",
    "Django",
    "psycopg",
    "celery",
    "redis",
    "procrastinate",
    "django-tasks-db",
    "django-ox",
    "pgqueuer",
    "asyncpg",
)
SERVER_SETTINGS = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
)


def described(bench):
    """Return everything as one dict of plain JSON types."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit(),
        "quick": bench.quick,
        "runs": bench.runs,
        "machine": machine(),
        "server": server(bench.url),
        "redis": redis_version(),
        "versions": {"Python": platform.python_version()} | versions(),
    }


def commit():
    """Return the commit of this checkout, and whether there is more than it."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        head = git("rev-parse", "--short=12", "HEAD")
        return f"{head} with changes" if git("status", "--porcelain") else head
    return "unknown"


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine():
    return {
        "processor": line_of("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "memory": gibibytes(line_of("/proc/meminfo", "MemTotal")),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def line_of(path, key):
    """Return the value of the first line `key: value` of a file, or an empty string."""
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def gibibytes(kilobytes):
    number = kilobytes.partition(" ")[0]
    return f"{int(number) / 1024**2:.1f} GiB" if number else "unknown"


def server(url):
    with psycopg.connect(url, autocommit=True) as connection:
        settings = {
            name: connection.execute("SELECT current_setting(%s)", [name]).fetchone()[0]
            for name in SERVER_SETTINGS
        }
        version = connection.execute("SHOW server_version").fetchone()[0]
    return {"version": f"PostgreSQL {version.partition(' ')[0]}"} | settings


def redis_version():
    """Return the version and persistence of the Redis server, or why there is none."""
    if problem := services.redis_problem():
        return problem
    import redis

    with redis.Redis.from_url(services.redis_url()) as client:
        version = client.info("server")["redis_version"]
        with contextlib.suppress(redis.RedisError):
            saves = client.config_get("save").get("save") or "off"
            appends = client.config_get("appendonly").get("appendonly")
            return f"Redis {version} (save {saves}, appendonly {appends})"
    return f"Redis {version}"


def versions():
    found = {}
    for name in DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
