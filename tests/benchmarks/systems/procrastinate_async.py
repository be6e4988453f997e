"""Procrastinate: one worker of sixteen concurrent async jobs."""

import asyncio

from tests.benchmarks.processes import finish
from tests.benchmarks.systems.contender import PYTHON, Contender, counting, environ_of_url

COMMAND = [PYTHON, "-m", "procrastinate", "--app=tests.benchmarks.systems.procrastinate_app.app"]
BATCH = 1_000
NAME = "Procrastinate, concurrency 16"


def schema(database):
    finish([*COMMAND, "schema", "--apply"], environ_of_url(database.url))


def fill(total):
    from tests.benchmarks.systems.procrastinate_app import app, noop

    async def defer():
        async with app.open_async():
            for start in range(0, total, BATCH):
                await noop.batch_defer_async(*[{}] * min(BATCH, total - start))

    asyncio.run(defer())


CONTENDERS = [
    Contender(
        name=NAME,
        module="procrastinate_async",
        how="async tasks, PsycopgConnector",
        commands=[[*COMMAND, "worker", "--concurrency=16"]],
        remaining=counting("SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'"),
        expected=300,
        schema=schema,
        distributions=("procrastinate",),
    )
]
