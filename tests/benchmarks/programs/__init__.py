"""Programs that measures run in processes of their own, on the benchmark's Django site.

A program takes its arguments as one JSON object and prints its answer as a last line of JSON.
"""

import contextlib
import json
import sys

from tests.benchmarks import processes

SECONDS = 300


def main(function):
    """Run a program: called at the end of its module when Python was started with it."""
    import django

    django.setup()
    print(json.dumps(function(**json.loads(sys.argv[1]))), flush=True)


@contextlib.contextmanager
def started(bench, database, name, settings=None, module=processes.SITE, **arguments):
    """Start a program on a database; at the end it is gone, whether it was done or not."""
    command = [sys.executable, "-m", f"{__name__}.{name}", json.dumps(arguments)]
    environ = processes.site_environ(database.url, settings, module=module)
    with processes.start(command, environ, bench.new_folder(name)) as process:
        yield process


def answer(process, seconds=SECONDS):
    """Wait for the end of a program and return its answer; Failed if there is none."""
    process.popen.wait(seconds)
    if process.popen.returncode:
        process.check()
    return json.loads(process.log.splitlines()[-1])


def answer_of(bench, database, name, settings=None, module=processes.SITE, **arguments):
    """Run a program to its end and return its answer. `module`: its settings."""
    with started(bench, database, name, settings, module, **arguments) as process:
        return answer(process)
