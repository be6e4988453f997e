"""The performance page, against the code that it explains."""

import re
import shlex
from importlib import import_module

import pytest
from django.core.management import get_commands, load_command_class
from django.db import connection

from django_jobqueue.database.claiming import reach_of
from django_jobqueue.database.migration_operations import RunSQLOn
from django_jobqueue.hints import LONGEST_PAUSE_SECONDS, LOOK_SECONDS, LOOK_SHARE, MOST_LEVELS
from django_jobqueue.worker import Pool
from django_jobqueue.worker.planning import PLANNER_OPTIONS
from django_jobqueue.worker.presence import INTERVAL_SECONDS
from tests.benchmarks import measures
from tests.benchmarks.__main__ import parser
from tests.marks import on_postgresql
from tests.pages import ROOT, table_rows

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"
SLOTS = 3


@pytest.fixture(scope="module")
def words():
    """The page in one line, so that a sentence may be broken anywhere."""
    return " ".join(PAGE.read_text().split())


@pytest.fixture(scope="module")
def migration():
    """The SQL that the first migration runs on PostgreSQL, in one line."""
    module = import_module("django_jobqueue.migrations.0001_initial")
    operations = [o for o in module.Migration.operations if isinstance(o, RunSQLOn)]
    return " ".join(" ".join(o.sql for o in operations if o.vendor == "postgresql").split())


def test_the_measured_section_is_there_once():
    page = PAGE.read_text()

    assert (page.count(BEGIN), page.count(END)) == (1, 1)
    assert page.index(BEGIN) < page.index(END)


def test_everything_is_measured():
    assert "TO BE MEASURED" not in PAGE.read_text()


def test_it_lists_every_measure_of_the_benchmark():
    assert [row[0] for row in table_rows(PAGE, "Measure")] == measures.NAMES


def test_the_options_of_the_benchmark_exist():
    taken = {option for action in parser()._actions for option in action.option_strings}
    shown = {row[0].split()[0] for row in table_rows(PAGE, "Option")}

    assert shown - taken == set()
    assert taken - shown == {"-h", "--help", "--peers"}


def test_the_worker_understands_the_options_to_begin_with():
    command = load_command_class(get_commands()["run_jobworker"], "run_jobworker")
    worker = command.create_parser("manage.py", "run_jobworker")
    texts = [row[1] for row in table_rows(PAGE, "Handlers")]
    shown = [match[0] for text in texts for match in re.finditer(r"(--\w+ \d+ ?)+", text)]

    assert len(shown) == len(texts) - 1
    for options in shown:
        worker.parse_args(shlex.split(options))


def test_the_threads_that_hold_a_connection_are_those_of_a_pool():
    threads = Pool(concurrency=SLOTS)._threads()
    holding = {thread.name for thread in threads if thread._using is not None}

    assert {row[0] for row in table_rows(PAGE, "Thread")} == holding


def test_the_numbers_of_connections_follow_from_that(words):
    of_the_queue = len(table_rows(PAGE, "Thread"))

    assert f"up to {of_the_queue} connections" in words
    assert f"processes \N{MULTIPLICATION SIGN} ({of_the_queue} + slots)" in words
    for row in table_rows(PAGE, "Processes"):
        processes, slots, connections = map(int, row)
        assert connections == processes * (of_the_queue + slots)


def test_the_planner_options_are_the_workers_own():
    rows = table_rows(PAGE, "Planner option")

    assert dict(rows) == dict(re.findall(r"-c (\w+)=(\w+)", PLANNER_OPTIONS))


def test_the_indexes_are_those_of_the_migration(migration):
    made = dict(re.findall(r"CREATE INDEX (\w+) ON django_jobqueue_job \(([^)]*)\)", migration))

    assert {row[0]: row[1] for row in table_rows(PAGE, "Index")} == made


def test_the_settings_of_the_table_are_those_of_the_migration(migration):
    [settings] = re.findall(r"ALTER TABLE django_jobqueue_job SET \(([^)]*)\)", migration)
    rows = table_rows(PAGE, "Setting")

    assert {row[0]: row[1] for row in rows} == dict(re.findall(r"(\w+) = ([\d.]+)", settings))


def test_its_numbers_are_those_of_the_code(words):
    assert all(reach_of(slots) >= 4 * slots + 64 for slots in range(1, 65))
    assert "at least 4 for each slot that waits and 64 more" in words
    assert f"for up to {MOST_LEVELS} priorities" in words
    assert f"less than one part in {LOOK_SHARE} of the time" in words
    assert f"every {LONGEST_PAUSE_SECONDS} s where looks are slow" in words
    assert LOOK_SECONDS == 1
    assert "a look every second" in words
    assert f"reports itself every {INTERVAL_SECONDS:.0f} s" in words


@on_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_its_queries_run(query):
    with connection.cursor() as cursor:
        cursor.execute(query)

        assert cursor.fetchall()
