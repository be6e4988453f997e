"""django-ox: its `ox_worker` with threads and processes."""

from functools import partial

from tests.benchmarks.systems import tasks_db
from tests.benchmarks.systems.contender import PYTHON, Contender, counting

APP = "django_ox"
schema = partial(tasks_db.migrate, app=APP)
environ_of_url = partial(tasks_db.environ_of_url, app=APP)


def fill(total):
    from django_ox.bulk import enqueue_many

    from tests.benchmarks.systems.django_task import noop

    enqueue_many(noop, [((), {})] * total)


def name_of(processes, threads):
    of_processes = f"{processes} processes of " if processes > 1 else ""
    return f"django-ox, {of_processes}{threads} threads"


def contender(processes, threads, expected, *, in_quick_runs=True):
    return Contender(
        name=name_of(processes, threads),
        module="ox",
        how="persistent connections",
        commands=[
            [
                PYTHON,
                "-m",
                "django",
                "ox_worker",
                f"--processes={processes}",
                f"--concurrency={threads}",
            ]
        ],
        remaining=counting("SELECT count(*) FROM django_ox_oxtask WHERE status <> 'SUCCESSFUL'"),
        expected=expected,
        schema=schema,
        environ=environ_of_url,
        distributions=("django-ox",),
        in_quick_runs=in_quick_runs,
    )


CONTENDERS = [
    contender(1, 16, 600, in_quick_runs=False),
    contender(2, 8, 600, in_quick_runs=False),
    contender(2, 16, 600),
]
