"""The Procrastinate app; imported by its own worker and by the process that enqueues."""

import os

from procrastinate import App, PsycopgConnector

from tests.benchmarks import stamps

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.task(name="noop")
async def noop():
    stamps.count()
