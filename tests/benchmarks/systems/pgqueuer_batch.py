"""PgQueuer: one worker that fetches a hundred jobs at a time."""

import asyncio
import os

from tests.benchmarks.processes import finish
from tests.benchmarks.systems.contender import PYTHON, Contender, counting, environ_of_url

COMMAND = [PYTHON, "-m", "pgqueuer"]
BATCH = 1_000
NAME = "PgQueuer, batch 100"


def schema(database):
    finish([*COMMAND, f"--pg-dsn={database.url}", "install"], environ_of_url(database.url))


def fill(total):
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    async def enqueue():
        connection = await asyncpg.connect(os.environ["DATABASE_URL"])
        queries = Queries(AsyncpgDriver(connection))
        for start in range(0, total, BATCH):
            count = min(BATCH, total - start)
            await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
        await connection.close()

    asyncio.run(enqueue())


CONTENDERS = [
    Contender(
        name=NAME,
        module="pgqueuer_batch",
        how="async entrypoint, asyncpg; its rows are deleted when done",
        commands=[
            [
                *COMMAND,
                "run",
                "--batch-size=100",
                "tests.benchmarks.systems.pgqueuer_app:main",
            ]
        ],
        remaining=counting("SELECT count(*) FROM pgqueuer"),
        expected=5000,
        schema=schema,
        distributions=("pgqueuer", "asyncpg"),
    )
]
