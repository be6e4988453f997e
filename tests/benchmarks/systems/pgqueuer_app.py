"""The PgQueuer consumer; imported by its own worker."""

import os
from contextlib import asynccontextmanager

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver

from tests.benchmarks import stamps


@asynccontextmanager
async def main():
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    queuer = PgQueuer(AsyncpgDriver(connection))

    @queuer.entrypoint("noop")
    async def noop(job):
        stamps.count()

    yield queuer
    await connection.close()
