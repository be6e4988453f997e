from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.state import ProjectState

from django_jobqueue.database.migration_operations import RunSQLOn
from django_jobqueue.models import Job
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql


def tables():
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    return {name for name in names if name.startswith("django_jobqueue_")}


def migrate(*arguments):
    call_command("migrate", "django_jobqueue", *arguments, verbosity=0)


@committed
def test_the_migrations_run_back_to_nothing_and_forth_again():
    before = tables()
    try:
        migrate("zero")
        assert tables() == set()
    finally:
        migrate()

    assert tables() == before
    assert Job.objects.enqueue("test.echo").pk


@pytest.mark.django_db
def test_the_migrations_say_what_the_models_say():
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=StringIO())


@on_postgresql
@pytest.mark.django_db
def test_the_jobs_table_leaves_room_for_updates_and_is_vacuumed_by_count():
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [Job._meta.db_table])
        (options,) = cursor.fetchone()

    assert {"fillfactor=70", "autovacuum_vacuum_threshold=1000"} <= set(options)


def apply(operation, *, backwards=False):
    run = operation.database_backwards if backwards else operation.database_forwards
    with connection.schema_editor() as editor:
        run("django_jobqueue", editor, ProjectState(), ProjectState())


@pytest.mark.parametrize("backwards", [False, True])
@committed
def test_sql_of_another_vendor_is_not_run(backwards):
    apply(RunSQLOn("mysql", "no SQL at all", "none either"), backwards=backwards)


@committed
def test_sql_of_this_vendor_is_run_both_ways():
    JobFactory()
    operation = RunSQLOn(
        connection.vendor,
        "UPDATE django_jobqueue_job SET queue = 'there'",
        "UPDATE django_jobqueue_job SET queue = 'back'",
    )

    apply(operation)
    assert Job.objects.get().queue == "there"
    apply(operation, backwards=True)
    assert Job.objects.get().queue == "back"


def test_the_plan_of_a_migration_says_whose_sql_it_is():
    operation = RunSQLOn("mysql", "ALTER TABLE jobs ADD COLUMN key (x)", "none")

    assert operation.describe() == "SQL on mysql: ALTER TABLE jobs ADD COLUMN key"


def test_a_written_migration_makes_the_operation_again():
    operation = RunSQLOn("mysql", "there", "back")
    name, args, kwargs = operation.deconstruct()

    again = RunSQLOn(*args, **kwargs)

    assert name == "RunSQLOn"
    assert (again.vendor, again.sql, again.reverse_sql) == ("mysql", "there", "back")
