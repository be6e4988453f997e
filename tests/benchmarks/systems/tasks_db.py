"""django-tasks-db: its `db_worker`, once and twice."""

from functools import partial

from tests.benchmarks.processes import environ, finish
from tests.benchmarks.systems.contender import PYTHON, Contender, counting

WORKER = [PYTHON, "-m", "django", "db_worker", "--verbosity=0", "--no-startup-delay"]


def environ_of_url(url, app="django_tasks_db"):
    return environ(
        DATABASE_URL=url,
        BENCH_TASKS=app,
        DJANGO_SETTINGS_MODULE="tests.benchmarks.systems.task_settings",
    )


def migrate(database, app):
    finish(
        [PYTHON, "-m", "django", "migrate", "--verbosity=0"],
        environ_of_url(database.url, app),
    )


schema = partial(migrate, app="django_tasks_db")


def fill(total):
    from django.db import transaction

    from tests.benchmarks.systems.django_task import noop

    with transaction.atomic():  # There is no bulk form.
        for _ in range(total):
            noop.enqueue()


def name_of(processes):
    return f"django-tasks-db, {processes} process{'es' if processes > 1 else ''}"


def contender(processes, expected):
    return Contender(
        name=name_of(processes),
        module="tasks_db",
        how="persistent connections, no logging",
        commands=[WORKER] * processes,
        remaining=counting(
            "SELECT count(*) FROM django_tasks_database_dbtaskresult WHERE status <> 'SUCCESSFUL'"
        ),
        expected=expected,
        schema=schema,
        environ=environ_of_url,
        distributions=("django-tasks-db",),
        in_quick_runs=processes > 1,
    )


CONTENDERS = [contender(1, 250), contender(2, 300)]
